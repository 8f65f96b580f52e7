#include "reformer/kernels/lsh_intervals.h"

#include <algorithm>

#include "reformer/base/parallel.h"

namespace reformer::kernels::cpu {
namespace {

struct Interval {
  int64_t begin;
  int64_t end;
};

// Of the query at place s, before its bucket cuts it.
Interval window_at(int64_t s, const WindowRule& rule, bool causal) {
  Interval window;
  if (rule.window == Window::kChunk) {
    const int64_t chunk = s / rule.length;
    window = {(chunk - 1) * rule.length, (chunk + 1) * rule.length};
  } else {
    window = {s - rule.length, s + rule.length + 1};
  }
  if (causal) window.end = s;
  return window;
}

}  // namespace

// One task walks the sorted order of one round of one head, bucket by bucket.
void lsh_intervals(const LshIntervalsArgs& args) {
  parallel_tasks(args.batch * args.heads * args.rounds, [&](int64_t task) {
    const int64_t round = task % args.rounds;
    const int64_t head = task / args.rounds;
    const bool* mask =
        args.mask ? args.mask + head / args.heads * args.length : nullptr;
    const int64_t hash_round = head * (args.rounds - args.natural_rounds) +
                               round - args.natural_rounds;
    const bool natural = round < args.natural_rounds;
    const uint16_t* buckets =
        natural ? nullptr : args.buckets + hash_round * args.length;
    const int32_t* order = args.order + task * args.length;
    int32_t* interval =
        args.interval + (head * args.length * args.rounds + round) * 2;
    const auto write = [&](int64_t s, int64_t begin, int64_t end) {
      int32_t* at = interval + order[s] * args.rounds * 2;
      at[0] = static_cast<int32_t>(begin);
      at[1] = static_cast<int32_t>(end);
    };
    const auto padded = [&](int64_t s) { return mask && !mask[order[s]]; };
    const auto bucket_at = [&](int64_t s) {
      return natural ? uint16_t{0} : buckets[order[s]];
    };

    int64_t start = 0;
    while (start < args.length && !padded(start)) {
      const uint16_t bucket = bucket_at(start);
      int64_t stop = start + 1;
      while (stop < args.length && !padded(stop) && bucket_at(stop) == bucket) {
        ++stop;
      }
      for (int64_t s = start; s < stop; ++s) {
        const auto window = window_at(s, args.rules[round], args.causal);
        write(s, std::max(start, window.begin), std::min(stop, window.end));
      }
      start = stop;
    }
    for (; start < args.length; ++start) write(start, start, start);
  });
}

}  // namespace reformer::kernels::cpu
