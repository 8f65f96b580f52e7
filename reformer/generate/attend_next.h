// The attention of the next position of every text, which then belongs to the
// text: a layer's step of generating token by token.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/generate/bucket_history.h"
#include "reformer/generate/key_value_cache.h"
#include "reformer/kernels/attend_next.h"

namespace reformer {

using kernels::EarlierPositions;

struct NextPosition {
  at::Tensor q;         // [batch, heads, 1, d_head]
  at::Tensor k;         // likewise; undefined: shared with q
  at::Tensor v;         // likewise
  at::Tensor buckets;   // [batch, heads, rounds, 1] uint16; undefined without
  at::Tensor position;  // [batch] int64: the last of the cache
};

//   earlier  what every head sees
//   history  what it sees besides, by its buckets: the last `window` history of
//            each, each position counted once
//   returns  [batch, heads, 1, d_head], no gradient: as attend_next_cpu's
//
// The cache has been extended by the position, which is written there and
// appended to the history. On CUDA one kernel, for which nothing waits and
// which may be captured: until the cache's table moves it is the same launch
// for every position. The cache keeps the buckets of as many rounds as the
// history.
at::Tensor attend_next(const NextPosition& next,
                       const EarlierPositions& earlier, KeyValueCache& cache,
                       BucketHistory& history);

}  // namespace reformer
