#include "reformer/train/not_finite.h"

#include <ATen/ops/full.h>

#include <cmath>

#include "reformer/io/checkpoint_folder.h"

namespace reformer {
namespace {

constexpr char kRemedy[] =
    "; try a smaller train.learning_rate, a longer train.warmup or a "
    "train.clip of 1";

std::string last_good_checkpoint(const std::string& directory, int64_t failed) {
  std::string leads_there;
  for (const auto& found : checkpoints_in(directory)) {
    const std::string step = std::to_string(found.step);
    if (found.step < failed - 1) {
      return "the checkpoint of step " + step + " in " + directory +
             " is the last good one" + leads_there;
    }
    if (found.step == 0) {  // what it began with: nothing to go on without
      leads_there += "; it began with weights that give this loss";
      continue;
    }
    leads_there +=
        "; that of step " + step + " gives this loss already: move it aside";
  }
  return "nothing was saved before it" + leads_there;
}

}  // namespace

std::string rank_not_finite(const StepStatistics& numbers, World* world) {
  if (world == nullptr || world->alone()) return "";
  const auto losses =
      world->control().gathered(at::full({1}, numbers.own_loss, at::kDouble));
  for (int64_t rank = 0; rank < losses.size(0); ++rank) {
    if (!std::isfinite(losses[rank].item<double>())) {
      return " on rank " + std::to_string(rank);
    }
  }
  return "";
}

std::string way_on_from_not_finite(const std::string& directory,
                                   int64_t failed) {
  return last_good_checkpoint(directory, failed) + kRemedy;
}

}  // namespace reformer
