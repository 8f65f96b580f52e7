// How much memory there is.
#pragma once

#include <cstdint>
#include <string>

namespace reformer {

// Bytes that programs can have here at most: what is built in, or what the
// container (its cgroup) is granted if that is less, and the swap. What needs
// more than this cannot work.
int64_t machine_memory();

// "12.3 GiB", for messages.
std::string gibibytes(double bytes);

}  // namespace reformer
