// The attention of the next position of every text, which then belongs to the
// text: a layer's step of generating token by token.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/generate/bucket_history.h"
#include "reformer/generate/key_value_cache.h"
#include "reformer/kernels/attend_next.h"

namespace reformer {

using kernels::EarlierPositions;
using kernels::PositionList;
using kernels::PositionRange;

struct NextPosition {
  at::Tensor q;         // [batch, heads, 1, d_head]
  at::Tensor k;         // likewise; undefined: shared with q
  at::Tensor v;         // likewise
  at::Tensor buckets;   // [batch, heads, rounds, 1] uint16; undefined without
  at::Tensor position;  // [batch] int64: the last of the cache
};

//   earlier  what every head sees
//   history  what it sees besides, by its buckets: the last `window` members of
//            each, each position counted once, or once in each group of rounds
//            that its shape tells of
//   returns  [batch, heads, 1, d_head], no gradient: as below
//
// The cache has been extended by the position, which is written there and
// appended to the history. On CUDA one kernel, for which nothing waits and
// which may be captured: until the cache's table moves it is the same launch
// for every position. The cache keeps the buckets of as many rounds as the
// history.
at::Tensor attend_next(const NextPosition& next,
                       const EarlierPositions& earlier, KeyValueCache& cache,
                       BucketHistory& history);

// What the newest position of each row sees: the union, each position once; of
// groups of lists once in each, and those of the range in all of them.
struct AttendedPositions {
  std::vector<PositionRange> ranges;  // [batch]: by all heads; may be empty
  std::vector<PositionList> lists;    // [batch, heads, n]: besides; n may be 0
  int64_t lists_together = 0;         // of n so many are a group; 0: all
};

// The same on a CPU, of positions that have been listed:
//
//   q        [batch, heads, 1, d_head]
//   cache    what was read so far, the newest position included
//   returns  [batch, heads, 1, d_head], no gradient
//
// The softmax over the attended positions: scores q . k with the unit keys of a
// shared-QK cache, q . k / sqrt(d_head) otherwise; the newest position's own
// value where nothing is attended. The time depends on how many positions are
// attended, not on how many the cache holds.
at::Tensor attend_next(const at::Tensor& q, const KeyValueCache& cache,
                       const AttendedPositions& attended);

}  // namespace reformer
