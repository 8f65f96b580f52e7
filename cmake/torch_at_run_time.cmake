# Where programs find LibTorch when they run.
#
# Built programs: where the build found it. Installed programs: a LibTorch of
# the project's own (third_party/, by tools/setup) is installed with them, so
# that neither is missed when the sources are moved or removed; a LibTorch of
# the user's own stays where it is, and they refer to it.
#
# It is installed laid out as in its wheels, torch/lib beside nvidia/cu13/lib:
# its libraries find each other by $ORIGIN. With its headers, so that
# find_package(reformer) needs no other.
#
# Defines REFORMER_OWN_TORCH, the RPATH of all that is linked after it, and
# REFORMER_INSTALLED_RPATH, that of installed programs.

set(REFORMER_TORCH_DIR "${CMAKE_INSTALL_LIBDIR}/reformer")
set(REFORMER_OWN_TORCH OFF)
if(EXISTS "${PROJECT_SOURCE_DIR}/third_party/libtorch/torch")
  file(REAL_PATH "${PROJECT_SOURCE_DIR}/third_party/libtorch/torch" _own)
  if(_own STREQUAL LibTorch_DIRECTORY)
    set(REFORMER_OWN_TORCH ON)
  endif()
endif()

# Linked with the RPATH that it keeps: where installing replaces one by another
# CMake leaves room for it by an empty element, which the loader takes for the
# current folder. Folders of other libraries CMake adds itself.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
set(CMAKE_INSTALL_RPATH "${LibTorch_DIRECTORY}/lib")
set(REFORMER_INSTALLED_RPATH "${CMAKE_INSTALL_RPATH}")
if(NOT REFORMER_OWN_TORCH)
  return()
endif()
file(RELATIVE_PATH _from_bin
  "/prefix/${CMAKE_INSTALL_BINDIR}" "/prefix/${REFORMER_TORCH_DIR}/torch/lib")
set(REFORMER_INSTALLED_RPATH "$ORIGIN/${_from_bin}")

set(_libraries c10 torch_cpu gomp)
set(_nvidia cudart cupti)
if(REFORMER_HAVE_CUDA)  # what device/device.cpp loads, and what that needs
  list(APPEND _libraries c10_cuda torch_cuda torch_cuda_linalg caffe2_nvrtc)
  set(_nvidia "")
endif()
list(JOIN _libraries "|" _libraries)
list(JOIN _nvidia "|" _nvidia)

cmake_path(GET LibTorch_DIRECTORY PARENT_PATH _wheels)
file(GLOB _torch_files "${_wheels}/torch/lib/*.so*")
file(GLOB_RECURSE _nvidia_files RELATIVE "${_wheels}" "${_wheels}/nvidia/*.so*")
foreach(_file IN LISTS _torch_files)
  cmake_path(GET _file FILENAME _name)
  if(_name MATCHES "^lib(${_libraries})\\.so")
    install(PROGRAMS "${_file}" DESTINATION "${REFORMER_TORCH_DIR}/torch/lib")
  endif()
endforeach()
foreach(_file IN LISTS _nvidia_files)
  if(_file MATCHES "/lib(${_nvidia})[^/]*$")
    cmake_path(GET _file PARENT_PATH _folder)
    install(PROGRAMS "${_wheels}/${_file}"
      DESTINATION "${REFORMER_TORCH_DIR}/${_folder}")
  endif()
endforeach()
install(DIRECTORY "${_wheels}/torch/include"
  DESTINATION "${REFORMER_TORCH_DIR}/torch")

# Their licences go where they go.
file(GLOB_RECURSE _licences RELATIVE "${_wheels}"
  "${_wheels}/*.dist-info/*LICENSE*" "${_wheels}/*.dist-info/*License*"
  "${_wheels}/*.dist-info/*NOTICE*")
foreach(_file IN LISTS _licences)
  cmake_path(GET _file PARENT_PATH _folder)
  install(FILES "${_wheels}/${_file}"
    DESTINATION "${REFORMER_TORCH_DIR}/${_folder}")
endforeach()
