#include "reformer/kernels/bucket_sort.h"

#include <vector>

#include "reformer/core/parallel.h"

namespace reformer::kernels::cpu {

// One task sorts one round of one head: count, prefix sums, place. Padded
// positions are one more bucket, behind all others.
void bucket_sort(const BucketSortArgs& args) {
  parallel_tasks(args.batch * args.heads * args.rounds, [&](int64_t task) {
    const int64_t round = task % args.rounds;
    const int64_t head = task / args.rounds;  // of all heads of the batch
    const bool* mask =
        args.mask ? args.mask + head / args.heads * args.length : nullptr;
    const uint16_t* buckets = args.buckets + task * args.length;
    int32_t* order = args.order + task * args.length;
    int32_t* place = args.place + head * args.length * args.rounds + round;
    const auto key_of = [&](int64_t i) -> int64_t {
      return mask && !mask[i] ? args.n_buckets : buckets[i];
    };

    std::vector<int32_t> next(args.n_buckets + 2, 0);
    for (int64_t i = 0; i < args.length; ++i) ++next[key_of(i) + 1];
    for (int64_t b = 1; b < args.n_buckets + 2; ++b) next[b] += next[b - 1];
    for (int64_t i = 0; i < args.length; ++i) {
      const int32_t s = next[key_of(i)]++;
      order[s] = static_cast<int32_t>(i);
      place[i * args.rounds] = s;
    }
  });
}

}  // namespace reformer::kernels::cpu
