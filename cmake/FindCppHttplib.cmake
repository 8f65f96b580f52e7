# cpp-httplib as Debian has it: compiled, with TLS and compression inside.
#
# Defines CppHttplib::httplib where all of it is there, in a version whose
# classes are those that cli/serve/http derives from: others have other virtual
# functions.

find_path(CppHttplib_INCLUDE_DIR httplib.h)
find_library(CppHttplib_LIBRARY cpp-httplib)
mark_as_advanced(CppHttplib_INCLUDE_DIR CppHttplib_LIBRARY)
set(CppHttplib_VERSION "")
if(EXISTS "${CppHttplib_INCLUDE_DIR}/httplib.h")
  file(STRINGS "${CppHttplib_INCLUDE_DIR}/httplib.h" _line
    REGEX "^#define CPPHTTPLIB_VERSION ")
  string(REGEX MATCH "[0-9]+(\\.[0-9]+)+" CppHttplib_VERSION "${_line}")
endif()
set(CppHttplib_VERSION_FITS FALSE)
set(_reason "")
if(CppHttplib_VERSION VERSION_GREATER_EQUAL 0.11 AND
   CppHttplib_VERSION VERSION_LESS 0.15)
  set(CppHttplib_VERSION_FITS TRUE)
elseif(CppHttplib_VERSION)
  set(_reason
    "`reformer serve` takes 0.11 to 0.14, not ${CppHttplib_VERSION}")
endif()
find_package(OpenSSL QUIET)
find_package(Threads QUIET)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CppHttplib
  REQUIRED_VARS CppHttplib_LIBRARY CppHttplib_INCLUDE_DIR
    CppHttplib_VERSION_FITS OPENSSL_INCLUDE_DIR Threads_FOUND
  REASON_FAILURE_MESSAGE "${_reason}")

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
