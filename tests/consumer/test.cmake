# Installs reformer into the build tree, then builds and runs the consumer
# against that copy alone, as another project would.

set(prefix "${REFORMER_BUILD}/consumer/prefix")
set(build "${REFORMER_BUILD}/consumer/build")

# Emptied first: a header that is no longer installed must not be found here.
file(REMOVE_RECURSE "${prefix}")
foreach(command IN ITEMS
    "${CMAKE_COMMAND};--install;${REFORMER_BUILD};--prefix;${prefix}"
    "${CMAKE_COMMAND};-S;${CMAKE_CURRENT_LIST_DIR};-B;${build};-G;${GENERATOR};-DCMAKE_CXX_COMPILER=${CXX};-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER};-DCMAKE_BUILD_TYPE=Release;-Dreformer_ROOT=${prefix}"
    "${CMAKE_COMMAND};--build;${build}"
    "${build}/consumer")
  execute_process(COMMAND ${command} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${command}")
  endif()
endforeach()
