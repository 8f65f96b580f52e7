// Stable counting sort by (bucket, position), padded positions last.
#pragma once

#include <cstdint>

#include "reformer/kernels/lsh_intervals.h"

namespace reformer::kernels {

struct BucketSortArgs {
  const uint16_t* buckets;  // [batch, heads, rounds - natural_rounds, length]
  const bool* mask;         // [batch, length], true: real; null: all are
  int32_t* order;           // [batch, heads, rounds, length], written
  int32_t* place;           // [batch, heads, length, rounds], written
  int64_t batch;
  int64_t heads;
  int64_t rounds;
  int64_t length;
  int64_t n_buckets;
  // Where each bucket begins and, last, the padding: [batch, heads, rounds,
  // n_buckets + 1], written where not null.
  int32_t* starts = nullptr;
  // So many rounds in front have one bucket and none in `buckets`: real
  // positions in their natural order.
  int64_t natural_rounds = 0;
};

namespace cpu {
void bucket_sort(const BucketSortArgs& args);
}

namespace cuda {
// Bytes of device memory that bucket_sort needs besides; 256-byte aligned.
int64_t bucket_sort_workspace(const BucketSortArgs& args);

// `starts` must be given. A bucket from n_buckets on counts as the last one.
// `intervals`: null, or what lsh_intervals shall make of the result, in the
// same pass that writes the places; its rules, interval and causal are read.
void bucket_sort(const BucketSortArgs& args, const LshIntervalsArgs* intervals,
                 void* workspace, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
