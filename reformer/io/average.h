// The mean of several checkpoints of a model, which is often better than the
// last of them (Vaswani et al. 2017, Sec. 6.1: the last 5, of the big model the
// last 20).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reformer/io/checkpoint.h"

namespace reformer {

// The folders of the last `count` checkpoints of a run, the newest first.
// Throws Error where there are fewer; train.keep says how many a run keeps.
std::vector<std::string> last_checkpoints(const std::string& directory,
                                          int64_t count);

// The newest one of `folders` (each as load_best_model takes it), with the
// mean of the parameters of all of them, float32, and no optimizer state. Sums
// are float64. Throws Error, naming the folder, where one has other parameters
// than the first. One at a time is in memory, beside the sums.
Checkpoint average_checkpoints(const std::vector<std::string>& folders);

}  // namespace reformer
