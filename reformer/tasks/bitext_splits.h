// Which pairs of a bitext are for training, and which are kept from it.
#pragma once

#include <string>
#include <vector>

#include "reformer/config/config.h"
#include "reformer/data/bitext.h"

namespace reformer {

// Of each pair of task.data; `labels` are what the names of its files say
// (bitext_split_named). A split that they do not name, and that has no data of
// its own (task.validation, task.test), is every 20th training pair, at most
// 3,000, by a fixed shuffle: whatever the seed, the same.
std::vector<BitextSplit> bitext_splits(const TaskConfig& task,
                                       const std::string& labels);

}  // namespace reformer
