// What to say of a run whose numbers are no longer finite.
#pragma once

#include <cstdint>
#include <string>

#include "reformer/distributed/world.h"
#include "reformer/train/learner.h"

namespace reformer {

// " on rank 3", the first whose own loss it is; empty where there is one rank,
// or the gradients alone are not finite. All ranks ask alike.
std::string rank_not_finite(const StepStatistics& numbers, World* world);

// When step `failed` came to nothing: which checkpoint of `directory` is the
// last good one, and what to try. What was saved right before it has the
// parameters that gave this loss.
std::string way_on_from_not_finite(const std::string& directory,
                                   int64_t failed);

}  // namespace reformer
