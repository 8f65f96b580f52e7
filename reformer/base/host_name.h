// This machine among others that see the same files.
#pragma once

#include <string>

namespace reformer {

std::string host_name();  // "unknown" where it has none

}  // namespace reformer
