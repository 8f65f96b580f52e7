/// @file
/// Which version this is. CMake reads it from here.
#pragma once

#define REFORMER_VERSION_MAJOR 0  ///< changes with what it promises
#define REFORMER_VERSION_MINOR 1  ///< changes with what it can do
#define REFORMER_VERSION_PATCH 0  ///< changes with everything else
#define REFORMER_VERSION "0.1.0"  ///< of these headers

namespace reformer {

/// The version of the library that is linked, "0.1.0". Differs from
/// `REFORMER_VERSION` where headers and library are of different versions.
const char* version();

}  // namespace reformer
