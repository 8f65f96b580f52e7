// Threads that play ranks, with the groups that processes would have.
#pragma once

#include <functional>

#include "reformer/distributed/world.h"

namespace reformer {

// Calls body(world) once for each of `size` ranks, each on a thread of its own
// that computes alone, with tensors on `device`. Throws what the first rank
// that failed threw.
void with_ranks(int64_t size, const Config& config,
                const std::function<void(World&)>& body,
                at::Device device = at::kCPU);

}  // namespace reformer
