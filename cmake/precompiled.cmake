# LibTorch's headers, read once for each library and test program instead of
# once for each file: they take a compiler four to seven seconds, and our own
# code one or two.
#
#   REFORMER_PRECOMPILE   ON; OFF to see that every file includes what it uses

option(REFORMER_PRECOMPILE "Precompile LibTorch's headers" ON)

# ccache has to be told that the precompiled header is known by its contents.
if(REFORMER_PRECOMPILE AND CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    "${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()

# precompile(<target> <header>...): the C++ files of `target` alone.
function(precompile target)
  if(NOT REFORMER_PRECOMPILE)
    return()
  endif()
  list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
  target_precompile_headers(${target} PRIVATE ${ARGN})
  preprocess_precompiled(${target})
endfunction()

# precompile_as(<target> <other>): by the header of `other`, which is compiled
# with the same options.
function(precompile_as target other)
  if(NOT REFORMER_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${other})
  preprocess_precompiled(${target})
endfunction()

# What ccache asks of g++.
function(preprocess_precompiled target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>")
  endif()
endfunction()
