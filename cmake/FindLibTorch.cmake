# LibTorch 2.11 from a PyPI wheel, without find_package(Torch): that takes 12 s,
# demands a CUDA toolkit even for the CPU, and mixes in Debian's libc10.
#
# Where it looks, first found wins; each may be the torch folder itself or the
# folder that holds it:
#   LibTorch_ROOT, REFORMER_TORCH   variable, then environment
#   the torch of `python3`          2.11.x only; of the Python that pip builds
#                                   a package for, where that is Python_EXECUTABLE
#   LibTorch_HINTS                  variable: where a project keeps its own
#
# Defines
#   LibTorch::cpu      tensors on the CPU: torch_cpu and c10
#   LibTorch::openmp   -fopenmp, with the one OpenMP runtime that torch_cpu uses
#   LibTorch_DIRECTORY, LibTorch_VERSION

set(_candidates "")
foreach(_given IN ITEMS
    "${LibTorch_ROOT}" "${REFORMER_TORCH}"
    "$ENV{LibTorch_ROOT}" "$ENV{REFORMER_TORCH}")
  if(_given)
    cmake_path(ABSOLUTE_PATH _given BASE_DIRECTORY "${CMAKE_SOURCE_DIR}")
    list(APPEND _candidates "${_given}" "${_given}/torch")
  endif()
endforeach()

# A torch that was named but is not there must not be replaced in silence.
set(_named "${_candidates}")
if(NOT _candidates)
  find_program(PYTHON3_PROGRAM python3)
  set(_python "${PYTHON3_PROGRAM}")
  if(Python_EXECUTABLE)
    set(_python "${Python_EXECUTABLE}")
  endif()
  if(_python)
    execute_process(
      COMMAND "${_python}" "${CMAKE_CURRENT_LIST_DIR}/find_torch.py"
      OUTPUT_VARIABLE _candidates OUTPUT_STRIP_TRAILING_WHITESPACE
      ERROR_QUIET)
  endif()
  foreach(_hint IN LISTS LibTorch_HINTS)
    list(APPEND _candidates "${_hint}" "${_hint}/torch")
  endforeach()
endif()

# Looked for anew each time: a cached folder would outlive the environment
# variable or the virtual environment that named it.
unset(LibTorch_DIRECTORY)
foreach(_candidate IN LISTS _candidates)
  if(EXISTS "${_candidate}/lib/libtorch_cpu.so")
    file(REAL_PATH "${_candidate}" LibTorch_DIRECTORY)
    break()
  endif()
endforeach()

unset(LibTorch_VERSION)
if(LibTorch_DIRECTORY)
  file(STRINGS
    "${LibTorch_DIRECTORY}/include/torch/headeronly/version.h" _lines
    REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9]+([0-9]+)" ".\\1" LibTorch_VERSION "${_lines}")
  string(SUBSTRING "${LibTorch_VERSION}" 1 -1 LibTorch_VERSION)
endif()

if(_named)
  list(GET _named 0 _named)
  set(_advice "No torch in ${_named}")
elseif(REFORMER_PYTHON)
  set(_advice "This environment's Python has no torch 2.11: first `pip install torch==2.11.0`, 2.7 GB with CUDA's libraries")
else()
  set(_advice "Run tools/setup, or set REFORMER_TORCH to a torch 2.11 folder")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_DIRECTORY
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "${_advice}")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  set(_lib "${LibTorch_DIRECTORY}/lib")

  # Two OpenMP runtimes in one process mean two thread pools fighting for the
  # cores. torch_cpu loads the libgomp beside it, so that file is linked; the
  # compiler's own -lgomp would leave the choice to the order of loading.
  # Wheels of other indices call it libgomp-HASH.so.1.
  add_library(LibTorch::openmp INTERFACE IMPORTED)
  file(GLOB _gomp "${_lib}/libgomp.so.1" "${_lib}/libgomp-*.so*"
    "${LibTorch_DIRECTORY}/../torch.libs/libgomp-*.so*")
  if(_gomp)
    list(GET _gomp 0 _gomp)
    set_target_properties(LibTorch::openmp PROPERTIES
      INTERFACE_COMPILE_OPTIONS "$<$<COMPILE_LANGUAGE:CXX>:-fopenmp>"
      INTERFACE_LINK_LIBRARIES "${_gomp}")
  else()
    find_package(OpenMP REQUIRED COMPONENTS CXX)
    set_target_properties(LibTorch::openmp PROPERTIES
      INTERFACE_LINK_LIBRARIES OpenMP::OpenMP_CXX)
  endif()

  foreach(_name IN ITEMS c10 torch_cpu)
    add_library(LibTorch::${_name} SHARED IMPORTED)
    set_target_properties(LibTorch::${_name} PROPERTIES
      IMPORTED_LOCATION "${_lib}/lib${_name}.so"
      IMPORTED_SONAME "lib${_name}.so")
  endforeach()

  # The NVIDIA runtime that torch_cpu needs is found through torch's own RPATH
  # (nvidia/cu13/lib beside the torch folder), by the linker and at run time.
  # openmp belongs to it: without -fopenmp the header-only at::parallel_for
  # runs on one thread.
  add_library(LibTorch::cpu INTERFACE IMPORTED)
  set_target_properties(LibTorch::cpu PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
      "${LibTorch_DIRECTORY}/include;${LibTorch_DIRECTORY}/include/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES
      "LibTorch::torch_cpu;LibTorch::c10;LibTorch::openmp")
endif()
