# What makes a mistake in memory harder to abuse, as far as the compiler, the
# linker and the processor know it, and keeps this machine's paths out of the
# program. tests/house/hardening_test.py looks for all of it in the program.
#
#   REFORMER_HARDEN   ON; OFF for measuring what it costs

option(REFORMER_HARDEN "Stack protector, FORTIFY, CET, full RELRO" ON)

include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)
include(CheckLinkerFlag)

# Of C++ and of what nvcc gives to the host's compiler.
function(add_host_options)
  foreach(_option IN LISTS ARGN)
    add_cxx_options("${_option}")
    add_cuda_options("-Xcompiler=${_option}")
  endforeach()
endfunction()

# harden(<name> <flag>): where the compiler takes it.
function(harden name flag)
  check_cxx_compiler_flag("-Werror ${flag}" REFORMER_HAVE_${name})
  if(REFORMER_HAVE_${name})
    add_host_options("${flag}")
  endif()
endfunction()

function(harden_link name flag)
  check_linker_flag(CXX "${flag}" REFORMER_HAVE_${name})
  if(REFORMER_HAVE_${name})
    add_link_options("${flag}")
  endif()
endfunction()

# The highest level that the C library knows without a warning. It works on
# optimised code alone, and sanitizers want to see the calls themselves.
function(harden_calls)
  if(CMAKE_BUILD_TYPE STREQUAL "Debug" OR REFORMER_SANITIZE OR REFORMER_TSAN)
    return()
  endif()
  foreach(_level 3 2)
    set(_flags -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${_level})
    list(JOIN _flags " " CMAKE_REQUIRED_FLAGS)
    string(PREPEND CMAKE_REQUIRED_FLAGS "-O2 -Werror ")
    check_cxx_source_compiles("#include <cstdio>\nint main() {}"
      REFORMER_HAVE_FORTIFY_${_level})
    if(REFORMER_HAVE_FORTIFY_${_level})
      add_host_options(${_flags})
      return()
    endif()
  endforeach()
endfunction()

if(REFORMER_HARDEN)
  harden(STACK_PROTECTOR -fstack-protector-strong)
  harden(STACK_CLASH_PROTECTION -fstack-clash-protection)
  harden(CF_PROTECTION -fcf-protection)                   # x86
  harden(BRANCH_PROTECTION -mbranch-protection=standard)  # ARM
  harden_calls()
  harden_link(RELRO "LINKER:-z,relro")
  harden_link(BIND_NOW "LINKER:-z,now")
  harden_link(NOEXECSTACK "LINKER:-z,noexecstack")
endif()

# Executables at any address: their objects are made for that already.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

# __FILE__ and debug information name files from the root of the sources, or of
# LibTorch's headers on.
function(forget_path path)
  check_cxx_compiler_flag(-ffile-prefix-map=/a=b REFORMER_HAVE_PREFIX_MAP)
  if(REFORMER_HARDEN AND REFORMER_HAVE_PREFIX_MAP)
    add_host_options("-ffile-prefix-map=${path}/=")
  endif()
endfunction()
