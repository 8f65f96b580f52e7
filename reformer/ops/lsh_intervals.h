// The interval of sorted places that each query attends to, in every round.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/kernels/lsh_intervals.h"
#include "reformer/ops/bucket_sort.h"

namespace reformer {

using kernels::WindowRule;

//   buckets  [batch, heads, rounds, length]  uint16
//   sorted   what bucket_sort made of them, with the same mask
//   rules    one for each round; a window of at least `length` is none. Rounds
//            more than `buckets` has are natural ones, in front
//   returns  [batch, heads, length, rounds, 2]  int32: begin, end in places
//
// The places of the query's own bucket that its window holds, and when causal
// only those before its own place. A query's own place may lie in its
// interval: the attention decides whether self counts. Padded positions have
// an empty interval and lie in nobody's. No gradient.
at::Tensor lsh_intervals(const at::Tensor& buckets, const SortedRounds& sorted,
                         const std::vector<WindowRule>& rules, bool causal,
                         const at::Tensor& mask = {});

struct WindowedRounds {
  SortedRounds sorted;
  at::Tensor interval;
};

// bucket_sort and lsh_intervals; on CUDA one pass fewer than one by one.
WindowedRounds windowed_rounds(const at::Tensor& buckets, int64_t n_buckets,
                               const std::vector<WindowRule>& rules,
                               bool causal, const at::Tensor& mask);

}  // namespace reformer
