// Which build of the program this is.
#pragma once

#include <string>

namespace reformer::cli {

// The linker's hash of the program that runs (its GNU build id), in hexadecimal
// digits; empty where it was linked without one.
std::string build_id();

}  // namespace reformer::cli
