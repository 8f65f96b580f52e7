// The attention of one more position: what generating token by token needs of
// lsh_attention, local_attention and the full ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/generate/key_value_cache.h"
#include "reformer/kernels/attend_next_cpu.h"

namespace reformer {

using kernels::PositionList;
using kernels::PositionRange;

// What the newest position of each row sees: the union, each position once.
struct AttendedPositions {
  std::vector<PositionRange> ranges;  // [batch]: by all heads; may be empty
  std::vector<PositionList> lists;    // [batch, heads, n]: besides; n may be 0
};

//   q        [batch, heads, 1, d_head]
//   cache    what was read so far, the newest position included
//   returns  [batch, heads, 1, d_head], no gradient
//
// The softmax over the attended positions: scores q . k with the unit keys of a
// shared-QK cache, q . k / sqrt(d_head) otherwise; the newest position's own
// value where nothing is attended. The time depends on how many positions are
// attended, not on how many the cache holds.
at::Tensor attend_next_cpu(const at::Tensor& q, const KeyValueCache& cache,
                           const AttendedPositions& attended);

}  // namespace reformer
