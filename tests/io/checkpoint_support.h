// A checkpoint of a few numbers, each a function of its step.
#pragma once

#include <ATen/ops/full.h>

#include "reformer/distributed/ranks.h"
#include "reformer/io/checkpoint.h"
#include "reformer/io/checkpoint_parts.h"

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

// What each of `count` ranks has of a state: some rows of its tensors; numbers
// that all have are the first one's.
inline std::vector<NamedTensor> part_of_state(
    const std::vector<NamedTensor>& state, const CheckpointPart& part) {
  std::vector<NamedTensor> own;
  for (const auto& [name, value] : state) {
    if (value.dim() == 0) {
      if (part.index == 0) own.push_back({name, value});
      continue;
    }
    const Share rows = share_of(value.size(0), static_cast<int64_t>(part.index),
                                static_cast<int64_t>(part.count));
    if (rows.count() == 0) continue;
    own.push_back({name, value.narrow(0, rows.begin, rows.count())});
  }
  return own;
}

// As `count` ranks do, one after the other.
inline void save_in_parts(const std::string& run, const Checkpoint& checkpoint,
                          bool best, size_t count = 3) {
  CheckpointOfParts whole(run, checkpoint.step);
  Checksums checksums;
  for (size_t i = 0; i < count; ++i) {
    Checkpoint own = checkpoint;
    own.optimizer = part_of_state(checkpoint.optimizer, {i, count});
    checksums.merge(write_part(whole.folder(), own, {i, count}));
  }
  whole.publish(checkpoint, checksums, count, best);
}

}  // namespace reformer
