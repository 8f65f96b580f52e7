# cpp-httplib as Debian has it: compiled, with TLS and compression inside.
#
# Defines CppHttplib::httplib where all of it is there.

find_path(CppHttplib_INCLUDE_DIR httplib.h)
find_library(CppHttplib_LIBRARY cpp-httplib)
mark_as_advanced(CppHttplib_INCLUDE_DIR CppHttplib_LIBRARY)
find_package(OpenSSL QUIET)
find_package(Threads QUIET)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CppHttplib REQUIRED_VARS
  CppHttplib_LIBRARY CppHttplib_INCLUDE_DIR OPENSSL_INCLUDE_DIR Threads_FOUND)

if(CppHttplib_FOUND AND NOT TARGET CppHttplib::httplib)
  add_library(CppHttplib::httplib UNKNOWN IMPORTED)
  # The definitions are those that Debian compiled it with (cpp-httplib.pc):
  # its classes have other members without them.
  set_target_properties(CppHttplib::httplib PROPERTIES
    IMPORTED_LOCATION "${CppHttplib_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CppHttplib_INCLUDE_DIR};${OPENSSL_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS
      "CPPHTTPLIB_OPENSSL_SUPPORT;CPPHTTPLIB_ZLIB_SUPPORT;CPPHTTPLIB_BROTLI_SUPPORT"
    INTERFACE_LINK_LIBRARIES "Threads::Threads")
endif()
