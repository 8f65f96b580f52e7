// How much work a set of intervals is, and what the windows cut off.
#pragma once

#include <cstdint>

#include "reformer/kernels/interval_attention.h"

namespace reformer::kernels {

struct IntervalStatisticsArgs {
  RoundsView rounds;
  const uint16_t* buckets;  // [batch, heads, bucket_rounds, length]
  const bool* mask;         // [batch, length], true: real; null: all are
  int64_t batch;
  int64_t heads;
  int64_t length;
  int64_t bucket_rounds;  // the last so many of the rounds are hash rounds
  int64_t tile_rows;      // the attention kernel's tile, for `computed`
  bool causal;
};

// Sums over all queries and heads.
struct IntervalStatistics {
  int64_t queries = 0;    // real ones
  int64_t attended = 0;   // pairs of the union, each once
  int64_t intervals = 0;  // pairs, as often as rounds found them
  int64_t computed = 0;   // scores a kernel with such tiles computes
  int64_t in_bucket = 0;  // pairs of the same bucket, summed over hash rounds
  int64_t overflow = 0;   // those of them outside the window
};

namespace cpu {
IntervalStatistics interval_statistics(const IntervalStatisticsArgs& args);
}

namespace cuda {
// `sums`: one IntervalStatistics in device memory, written.
void interval_statistics(const IntervalStatisticsArgs& args,
                         IntervalStatistics* sums, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
