# CUDA kernels are compiled wherever nvcc is: in PATH, in CUDA_HOME, in
# /usr/local/cuda, or named by CUDACXX or CMAKE_CUDA_COMPILER.
#
#   REFORMER_CUDA        AUTO, ON (an error where there is no nvcc) or OFF
#   REFORMER_LINE_INFO   OFF; ON for profilers and compute-sanitizer, which then
#                        name lines of the sources, whose paths are in the
#                        program then
#
# Defines REFORMER_HAVE_CUDA, and CudaRuntime::static where it is ON.

set(REFORMER_CUDA AUTO CACHE STRING
  "CUDA kernels: AUTO (where nvcc is), ON or OFF")
set_property(CACHE REFORMER_CUDA PROPERTY STRINGS AUTO ON OFF)
option(REFORMER_LINE_INFO "CUDA kernels know their lines in the sources" OFF)

set(REFORMER_HAVE_CUDA OFF)
if(NOT REFORMER_CUDA)
  return()
endif()

# Machine code for A100 and H100, and what the driver compiles for later ones.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
endif()
if(NOT CMAKE_CUDA_COMPILER)
  if(NOT DEFINED ENV{CUDACXX})
    find_program(NVCC_PROGRAM nvcc
      HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
      PATH_SUFFIXES bin)
    if(NVCC_PROGRAM)
      set(ENV{CUDACXX} "${NVCC_PROGRAM}")
    endif()
  endif()
  # Only then: without nvcc there is nothing to wait for.
  if(DEFINED ENV{CUDACXX})
    include(CheckLanguage)
    check_language(CUDA)
    if(NOT CMAKE_CUDA_COMPILER)
      message(NOTICE "$ENV{CUDACXX} does not work with this compiler "
        "(CMake's log in CMakeFiles says why)")
      unset(CMAKE_CUDA_COMPILER CACHE)  # or a repaired one would not be tried
    endif()
  endif()
endif()

if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
    message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is too old for "
      "C++20, 12 is required; build without it by -DREFORMER_CUDA=OFF")
  endif()
  # What CMake 3.25 does not know of nvcc 12 and later.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  find_package(CudaRuntime REQUIRED)
  if(CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  endif()
  set(REFORMER_HAVE_CUDA ON)
elseif(REFORMER_CUDA STREQUAL "ON")
  message(FATAL_ERROR "REFORMER_CUDA is ON, but no nvcc was found; "
    "put it in PATH or name it with CUDACXX")
endif()
