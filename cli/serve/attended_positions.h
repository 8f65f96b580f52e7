// What a position of a text sees in one head of a layer, and how much of each.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "reformer/model/attention_layer.h"

namespace reformer::cli {

// What a layer computed of a whole text.
struct LayerRows {
  at::Tensor q;        // [heads, length, d_head] float32 on the CPU, turned
  at::Tensor k;        // likewise; undefined: shared with q
  at::Tensor buckets;  // [hashed heads, rounds, length]; undefined: none
};

struct AttendedPosition {
  double weight = 0;    // of the softmax
  uint64_t rounds = 0;  // a bit for each hash round that found it; from the
                        // 63rd on they share one
};

// As the position's turn came in decoding: by trailing windows, and of
// lsh_huggingface as the last position of `rows`, which must end there;
// there with interruption points between the rounds.
//
//   returns  [position + 1]: of the positions whose keys were seen
std::vector<AttendedPosition> attended_positions(const AttentionLayer& layer,
                                                 const LayerRows& rows,
                                                 int64_t head,
                                                 int64_t position);

}  // namespace reformer::cli
