#include "reformer/kernels/bucket_sort.h"

#include <algorithm>
#include <vector>

#include "reformer/base/parallel.h"

namespace reformer::kernels::cpu {

// One task sorts one round of one head: count, prefix sums, place. Padded
// positions are one more bucket, behind all others.
void bucket_sort(const BucketSortArgs& args) {
  parallel_tasks(args.batch * args.heads * args.rounds, [&](int64_t task) {
    const int64_t round = task % args.rounds;
    const int64_t head = task / args.rounds;  // of all heads of the batch
    const bool* mask =
        args.mask ? args.mask + head / args.heads * args.length : nullptr;
    // Hash rounds of the heads before this one, and of this one before this
    // round.
    const int64_t hash_round = head * (args.rounds - args.natural_rounds) +
                               round - args.natural_rounds;
    const bool natural = round < args.natural_rounds;
    const uint16_t* buckets =
        natural ? nullptr : args.buckets + hash_round * args.length;
    int32_t* order = args.order + task * args.length;
    int32_t* place = args.place + head * args.length * args.rounds + round;
    const auto key_of = [&](int64_t i) -> int64_t {
      if (mask && !mask[i]) return args.n_buckets;
      return natural ? 0 : buckets[i];
    };

    std::vector<int32_t> next(args.n_buckets + 2, 0);
    for (int64_t i = 0; i < args.length; ++i) ++next[key_of(i) + 1];
    for (int64_t b = 1; b < args.n_buckets + 2; ++b) next[b] += next[b - 1];
    if (args.starts) {
      std::copy_n(next.begin(), args.n_buckets + 1,
                  args.starts + task * (args.n_buckets + 1));
    }
    for (int64_t i = 0; i < args.length; ++i) {
      const int32_t s = next[key_of(i)]++;
      order[s] = static_cast<int32_t>(i);
      place[i * args.rounds] = s;
    }
  });
}

}  // namespace reformer::kernels::cpu
