// The interval of sorted places that each query attends to, in every round.
#pragma once

#include <cstdint>

#include "reformer/config/lsh_config.h"

namespace reformer::kernels {

// The window of one round. A length of at least the sequence's is no window:
// the whole bucket.
struct WindowRule {
  Window window;
  int64_t length;
};

struct LshIntervalsArgs {
  const uint16_t* buckets;  // [batch, heads, rounds - natural_rounds, length]
  const int32_t* order;     // [batch, heads, rounds, length]
  const bool* mask;         // [batch, length], true: real; null: all are
  const WindowRule* rules;  // [rounds]
  int32_t* interval;        // [batch, heads, length, rounds, 2], written
  int64_t batch;
  int64_t heads;
  int64_t rounds;
  int64_t length;
  bool causal;
  int64_t natural_rounds = 0;  // as bucket_sort's
  // What bucket_sort wrote; CUDA reads these instead of `order` and `mask`.
  const int32_t* place = nullptr;   // [batch, heads, length, rounds]
  const int32_t* starts = nullptr;  // [batch, heads, rounds, n_buckets + 1]
  int64_t n_buckets = 0;
};

namespace cpu {
void lsh_intervals(const LshIntervalsArgs& args);
}

namespace cuda {
inline constexpr int64_t kMaxRounds = 64;  // their rules travel by value

void lsh_intervals(const LshIntervalsArgs& args, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
