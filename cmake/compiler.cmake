# How everything of ours is compiled: warnings, sanitizers, a compiler cache.

add_compile_options(-Wall -Wextra -Wpedantic)
if(REFORMER_WERROR)
  add_compile_options(-Werror)
endif()

if(REFORMER_SANITIZE)
  # -O1 keeps stack traces readable and the tests within minutes.
  add_compile_options(
    -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()
