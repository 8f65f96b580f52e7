// What LSH attention attends to, and what its windows cut off.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/config/lsh_config.h"

namespace reformer {

struct LshStatistics {
  double keys_per_query = 0;      // of the union, each pair once, self excluded
  double computed_per_query = 0;  // scores that tiles of 16 queries compute
  double overflow = 0;      // share of same-bucket pairs outside their window
  int64_t same_bucket = 0;  // such pairs
  int64_t outside_window = 0;  // of them
};

//   buckets  [batch, heads, rounds, length] uint16
//
// Counts, exactly, over all real queries. Takes about as long as the attention
// itself: for benchmarks and for progress reports at intervals.
LshStatistics lsh_statistics(const at::Tensor& buckets, const LshConfig& config,
                             const at::Tensor& mask = {});

}  // namespace reformer
