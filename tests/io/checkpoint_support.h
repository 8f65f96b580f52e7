// A checkpoint of a few numbers, each a function of its step.
#pragma once

#include <ATen/ops/full.h>

#include "reformer/io/checkpoint.h"

namespace reformer {

inline Checkpoint tiny_checkpoint(int64_t step, int64_t keep) {
  Checkpoint checkpoint;
  checkpoint.config.train.keep = keep;
  checkpoint.step = step;
  checkpoint.data_position = 3 * step;
  checkpoint.instruction_set = "plain";
  checkpoint.parameters = {
      {"embedding.weight", at::full({2, 3}, step, at::kFloat)},
      {"head.bias", at::full({5}, -step, at::kFloat)}};
  checkpoint.optimizer = {{"t", at::full({}, step, at::kLong)},
                          {"head.bias.v", at::full({5}, step, at::kDouble)}};
  return checkpoint;
}

}  // namespace reformer
