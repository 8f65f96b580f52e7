// The sorted order of every round (paper Sec. 2: "sort the queries by bucket
// number and, within each bucket, by sequence position").
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/kernels/lsh_intervals.h"

namespace reformer {

struct SortedRounds {
  at::Tensor order;  // [batch, heads, rounds, length] int32: position at place
  at::Tensor place;  // [batch, heads, length, rounds] int32: place of position
  // [batch, heads, rounds, n_buckets + 1] int32: the place at which each bucket
  // and, last, the padding begins. lsh_intervals needs it on CUDA alone.
  at::Tensor starts = {};
};

//   buckets  [batch, heads, rounds, length]  uint16 in [0, n_buckets)
//   mask     [batch, length] bool, true where real; undefined: all are
//
// A stable counting sort. Padded positions come last, whatever their bucket.
// Throws Error when a bucket of a real position is out of range; on CUDA such a
// one counts as the last bucket. No gradient. `natural_rounds` more rounds, all
// in one bucket, come in front of those that `buckets` has.
// `intervals` is for windowed_rounds alone.
SortedRounds bucket_sort(const at::Tensor& buckets, int64_t n_buckets,
                         const at::Tensor& mask = {},
                         int64_t natural_rounds = 0,
                         const kernels::LshIntervalsArgs* intervals = nullptr);

}  // namespace reformer
