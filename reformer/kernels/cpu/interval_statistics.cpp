#include "reformer/kernels/interval_statistics.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "reformer/base/parallel.h"

namespace reformer::kernels::cpu {
namespace {

// One (batch, head).
class Counter {
 public:
  Counter(const IntervalStatisticsArgs& args, int64_t batch, int64_t head)
      : args_(args),
        n_(args.rounds.rounds),
        order_(args.rounds.order + batch * args.rounds.order_batch_stride +
               head * args.rounds.order_head_stride),
        place_(args.rounds.place + batch * args.rounds.place_batch_stride +
               head * args.rounds.place_head_stride),
        interval_(args.rounds.interval +
                  batch * args.rounds.interval_batch_stride +
                  head * args.rounds.interval_head_stride),
        buckets_(args.buckets + (batch * args.heads + head) *
                                    args.bucket_rounds * args.length),
        mask_(args.mask ? args.mask + batch * args.length : nullptr) {}

  IntervalStatistics count() const {
    IntervalStatistics sums;
    for (int64_t i = 0; i < args_.length; ++i) sums.queries += real(i);
    for (int64_t round = 0; round < n_; ++round) {
      count_attended(round, sums);
      count_computed(round, sums);
    }
    for (int64_t round = 0; round < args_.bucket_rounds; ++round) {
      count_overflow(round, sums);
    }
    return sums;
  }

 private:
  bool real(int64_t i) const { return !mask_ || mask_[i]; }
  int64_t begin(int64_t i, int64_t round) const {
    return interval_[(i * n_ + round) * 2];
  }
  int64_t end(int64_t i, int64_t round) const {
    return interval_[(i * n_ + round) * 2 + 1];
  }

  bool met_before(int64_t i, int64_t j, int64_t round) const {
    for (int64_t r = 0; r < round; ++r) {
      const int64_t s = place_[j * n_ + r];
      if (begin(i, r) <= s && s < end(i, r)) return true;
    }
    return false;
  }

  void count_attended(int64_t round, IntervalStatistics& sums) const {
    const int32_t* order = order_ + round * args_.length;
    for (int64_t i = 0; i < args_.length; ++i) {
      for (int64_t s = begin(i, round); s < end(i, round); ++s) {
        const int64_t j = order[s];
        if (j == i) continue;
        ++sums.intervals;
        sums.attended += !met_before(i, j, round);
      }
    }
  }

  void count_computed(int64_t round, IntervalStatistics& sums) const {
    const int32_t* order = order_ + round * args_.length;
    for (int64_t s = 0; s < args_.length; s += args_.tile_rows) {
      const int64_t stop = std::min(s + args_.tile_rows, args_.length);
      int64_t first = args_.length;
      int64_t last = 0;
      for (int64_t at = s; at < stop; ++at) {
        const int64_t i = order[at];
        if (begin(i, round) >= end(i, round)) continue;
        first = std::min(first, begin(i, round));
        last = std::max(last, end(i, round));
      }
      sums.computed += std::max<int64_t>(0, last - first) * (stop - s);
    }
  }

  // Pairs of a bucket of n: each query has those before it, or all others.
  void count_overflow(int64_t hash_round, IntervalStatistics& sums) const {
    const int64_t round = n_ - args_.bucket_rounds + hash_round;
    const uint16_t* buckets = buckets_ + hash_round * args_.length;
    std::vector<int64_t> sizes(65536, 0);
    int64_t in_bucket = 0;
    int64_t in_window = 0;
    for (int64_t i = 0; i < args_.length; ++i) {
      if (!real(i)) continue;
      const int64_t before = sizes[buckets[i]]++;
      in_bucket += args_.causal ? before : 2 * before;
      const int64_t s = place_[i * n_ + round];
      const bool holds_self = begin(i, round) <= s && s < end(i, round);
      in_window += end(i, round) - begin(i, round) - holds_self;
    }
    sums.in_bucket += in_bucket;
    sums.overflow += in_bucket - in_window;
  }

  const IntervalStatisticsArgs& args_;
  const int64_t n_;  // rounds
  const int32_t* order_;
  const int32_t* place_;
  const int32_t* interval_;
  const uint16_t* buckets_;
  const bool* mask_;
};

}  // namespace

IntervalStatistics interval_statistics(const IntervalStatisticsArgs& args) {
  IntervalStatistics sums;
  std::mutex sums_mutex;
  parallel_tasks(args.batch * args.heads, [&](int64_t task) {
    const auto own =
        Counter(args, task / args.heads, task % args.heads).count();
    const std::lock_guard<std::mutex> lock(sums_mutex);
    sums.queries += own.queries;
    sums.attended += own.attended;
    sums.intervals += own.intervals;
    sums.computed += own.computed;
    sums.in_bucket += own.in_bucket;
    sums.overflow += own.overflow;
  });
  return sums;
}

}  // namespace reformer::kernels::cpu
