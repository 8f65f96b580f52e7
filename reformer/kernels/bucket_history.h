// Which positions fell into each bucket, the last of them, on a GPU.
#pragma once

#include <cstdint>

namespace reformer::kernels {

// A ring of positions for each bucket of each round of each (row, head): its
// member i, counted from 0, lies at i % window until the ring comes round.
struct BucketHistory {
  int32_t* members;  // [batch, heads, rounds, n_buckets, window]
  int32_t* counts;   // [batch, heads, rounds, n_buckets]: members so far
  int64_t rounds;
  int64_t n_buckets;
  int64_t window;
  int64_t together;  // rounds that a softmax goes over; 0: all

  // So many softmaxes, whose weights add up.
  constexpr int64_t groups() const {
    return together > 0 ? (rounds + together - 1) / together : 1;
  }
  // Of the group of `round` the first.
  constexpr int64_t first_of_group(int64_t round) const {
    return together > 0 ? round - round % together : 0;
  }

  // Of `bucket` in that round of all rows' and heads' rounds. One out of range,
  // which no GPU stops to look for, counts as the last: nothing outside the
  // history is read or written.
  constexpr int64_t bucket(int64_t round, int64_t bucket) const {
    return round * n_buckets + (bucket < n_buckets ? bucket : n_buckets - 1);
  }
};

// All on the device.
struct FillBucketHistoryArgs {
  const uint16_t* buckets;  // [batch, heads, rounds, length]
  const int64_t* counts;    // [batch]: how many of `length` a row has
  BucketHistory history;    // empty before
  int64_t batch;
  int64_t heads;
  int64_t length;
};

namespace cuda {
// Positions 0, 1, ... of each row, in that order.
void fill_bucket_history(const FillBucketHistoryArgs& args, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
