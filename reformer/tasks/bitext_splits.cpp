#include "reformer/tasks/bitext_splits.h"

#include <algorithm>

#include "reformer/data/row_key.h"
#include "reformer/data/shuffle.h"

namespace reformer {
namespace {

constexpr int64_t kHeldOut = 20;  // every so many pairs
constexpr int64_t kMostHeldOut = 3000;

int64_t count(const std::vector<BitextSplit>& splits, BitextSplit split) {
  return std::count(splits.begin(), splits.end(), split);
}

// Moves so many training pairs to `split`.
void hold_out(std::vector<BitextSplit>& splits, BitextSplit split,
              int64_t wanted) {
  const auto key =
      row_key(/*seed=*/0, Draw::kTranslationHoldOut, /*index=*/0, 0);
  const int64_t pairs = count(splits, BitextSplit::kTrain);
  int64_t place = 0;
  for (auto& of_pair : splits) {
    if (of_pair != BitextSplit::kTrain) continue;
    if (shuffled(place++, pairs, key) < wanted) of_pair = split;
  }
}

}  // namespace

std::vector<BitextSplit> bitext_splits(const TaskConfig& task,
                                       const std::string& labels) {
  std::vector<BitextSplit> splits;
  splits.reserve(labels.size());
  for (const char label : labels) {
    splits.push_back(static_cast<BitextSplit>(label));
  }
  const int64_t pairs = count(splits, BitextSplit::kTrain);
  const int64_t wanted =
      std::min(kMostHeldOut, (pairs + kHeldOut - 1) / kHeldOut);
  for (const auto& [data, split] :
       {std::pair{&task.validation, BitextSplit::kValidation},
        std::pair{&task.test, BitextSplit::kTest}}) {
    if (data->empty() && count(splits, split) == 0) {
      hold_out(splits, split, wanted);
    }
  }
  return splits;
}

}  // namespace reformer
