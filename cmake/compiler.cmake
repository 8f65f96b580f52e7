# How everything of ours is compiled: warnings, sanitizers, a compiler cache.

function(add_cxx_options)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${ARGN}>")
endfunction()
function(add_cuda_options)
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${ARGN}>")
endfunction()

add_cxx_options(-Wall -Wextra -Wpedantic)
add_cuda_options(-Xcompiler=-Wall,-Wextra)  # what nvcc writes is not pedantic
if(REFORMER_WERROR)
  add_cxx_options(-Werror)
  add_cuda_options(-Werror=all-warnings -Xcompiler=-Werror)
endif()

if(REFORMER_SANITIZE)
  # -O1 keeps stack traces readable and the tests within minutes.
  add_cxx_options(
    -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Which g++ 12 says of its own <regex> under the sanitizers.
    add_cxx_options(-Wno-maybe-uninitialized)
  endif()
endif()

if(REFORMER_FUZZ)
  # Counters of the branches that an input takes (tests/fuzz), and assertions.
  add_cxx_options(-g1 -UNDEBUG -fsanitize=fuzzer-no-link)
endif()

if(REFORMER_TSAN)
  add_cxx_options(-O1 -fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
endif()

# A hash of the program in itself, by which ranks of different builds are told
# apart (cli/process/build_id.h).
add_link_options("LINKER:--build-id=sha1")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()
