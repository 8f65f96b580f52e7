// The sorted order of every round (paper Sec. 2: "sort the queries by bucket
// number and, within each bucket, by sequence position").
#pragma once

#include <ATen/core/Tensor.h>

namespace reformer {

struct SortedRounds {
  at::Tensor order;  // [batch, heads, rounds, length] int32: position at place
  at::Tensor place;  // [batch, heads, length, rounds] int32: place of position
};

//   buckets  [batch, heads, rounds, length]  uint16 in [0, n_buckets)
//   mask     [batch, length] bool, true where real; undefined: all are
//
// A stable counting sort. Padded positions come last, whatever their bucket.
// Throws Error when a bucket of a real position is out of range. No gradient.
SortedRounds bucket_sort(const at::Tensor& buckets, int64_t n_buckets,
                         const at::Tensor& mask = {});

}  // namespace reformer
