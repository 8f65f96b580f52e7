// The interval of a query in one round, from its place and its bucket.
#pragma once

#include <algorithm>

#include "reformer/kernels/lsh_intervals.h"

namespace reformer::kernels::cuda {

// WindowRule of every round, as kernels take them.
struct WindowRules {
  int32_t length[kMaxRounds];
  bool chunk[kMaxRounds];
};

inline WindowRules window_rules(const LshIntervalsArgs& args) {
  WindowRules rules{};
  for (int64_t round = 0; round < args.rounds; ++round) {
    rules.length[round] = static_cast<int32_t>(
        std::min<int64_t>(args.rules[round].length, args.length));
    rules.chunk[round] = args.rules[round].window == Window::kChunk;
  }
  return rules;
}

// Of the query at place s, in a bucket of the places [start, stop).
__device__ __forceinline__ int2 interval_at(int s, int start, int stop,
                                            int length, bool chunk,
                                            bool causal) {
  // The window is [middle - length, middle + length), or one more at the end
  // where it trails; differences of places never overflow, sums may.
  const int middle = chunk ? s - s % length : s;
  const int after = chunk ? length - 1 : length;
  const int last = stop - 1 - middle <= after ? stop : middle + after + 1;
  return {max(start, middle - length), causal ? min(s, stop) : last};
}

}  // namespace reformer::kernels::cuda
