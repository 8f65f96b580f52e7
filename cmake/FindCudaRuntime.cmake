# CUDA's runtime as a static library, so that a program with CUDA kernels also
# starts where there is no CUDA at all.
#
# Where it looks: CudaRuntime_ROOT, beside nvcc where CUDA is enabled, then
# /usr/local/cuda. Defines CudaRuntime::static and CudaRuntime_LIBRARY.

set(_hints "")
if(CMAKE_CUDA_COMPILER)
  file(REAL_PATH "${CMAKE_CUDA_COMPILER}" _nvcc)
  cmake_path(GET _nvcc PARENT_PATH _bin)
  cmake_path(GET _bin PARENT_PATH _toolkit)
  list(APPEND _hints "${_toolkit}")
endif()
find_library(CudaRuntime_LIBRARY cudart_static
  HINTS ${_hints} ${CMAKE_CUDA_HOST_IMPLICIT_LINK_DIRECTORIES}
    ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda
  PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib)
mark_as_advanced(CudaRuntime_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaRuntime REQUIRED_VARS CudaRuntime_LIBRARY)

if(CudaRuntime_FOUND AND NOT TARGET CudaRuntime::static)
  find_package(Threads REQUIRED)
  add_library(CudaRuntime::static STATIC IMPORTED)
  set_target_properties(CudaRuntime::static PROPERTIES
    IMPORTED_LOCATION "${CudaRuntime_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};rt")
endif()
