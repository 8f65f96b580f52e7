// Stable counting sort by (bucket, position), padded positions last.
#pragma once

#include <cstdint>

namespace reformer::kernels {

struct BucketSortArgs {
  const uint16_t* buckets;  // [batch, heads, rounds, length]
  const bool* mask;         // [batch, length], true: real; null: all are
  int32_t* order;           // [batch, heads, rounds, length], written
  int32_t* place;           // [batch, heads, length, rounds], written
  int64_t batch;
  int64_t heads;
  int64_t rounds;
  int64_t length;
  int64_t n_buckets;
};

namespace cpu {
void bucket_sort(const BucketSortArgs& args);
}

}  // namespace reformer::kernels
