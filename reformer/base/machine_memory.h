// How much memory there is.
#pragma once

#include <cstdint>
#include <string>

namespace reformer {

// Bytes that programs can have here at most: what is built in, or what the
// container (its cgroup) is granted if that is less, and the swap. What needs
// more than this cannot work.
int64_t machine_memory();

// What a container is granted by the cgroup whose files are in `folder`, by
// version 1 or 2 of cgroups; the largest int64 where it says "max" or nothing.
int64_t granted_memory(const std::string& folder);

// "12.3 GiB", for messages.
std::string gibibytes(double bytes);

}  // namespace reformer
