# `cmake --install build --prefix DIR`, and find_package(reformer) from there.

include(CMakePackageConfigHelpers)
set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/reformer")

install(TARGETS reformer reformer_kernels EXPORT reformerTargets)
# The public headers, and no others (tests/house/package_test.py looks).
file(GLOB _public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/reformer/*.h")
install(FILES ${_public_headers}
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/reformer")
if(REFORMER_HAVE_CUDA)
  install(FILES "${CudaRuntime_LIBRARY}"
    DESTINATION "${REFORMER_TORCH_DIR}/lib")
endif()
install(EXPORT reformerTargets
  NAMESPACE reformer:: DESTINATION "${_package_dir}")

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/reformerConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/reformerConfig.cmake"
  INSTALL_DESTINATION "${_package_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/reformerConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/reformerConfig.cmake"
  "${PROJECT_BINARY_DIR}/reformerConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindLibTorch.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindCudaRuntime.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindSentencePiece.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/find_torch.py"
  DESTINATION "${_package_dir}")
