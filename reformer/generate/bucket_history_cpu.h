// Which positions fell into each bucket, the last of them.
#pragma once

#include <cstdint>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/generate/attend_next_cpu.h"

namespace reformer {

// A set of buckets for each of `rounds` rounds (of each head of each row).
// Keeps the last `window` members of a bucket, or up to twice as many: all that
// the trailing rule ever asks for.
class CpuBucketHistory {
 public:
  CpuBucketHistory(int64_t rounds, int64_t n_buckets, int64_t window)
      : n_buckets_(n_buckets), window_(window), members_(rounds * n_buckets) {}

  // Positions come in ascending order. Throws Error, here and below, where
  // there is no such bucket.
  void append(int64_t round, int64_t bucket, int64_t position) {
    auto& members = members_[index(round, bucket)];
    if (static_cast<int64_t>(members.size()) == 2 * window_) {
      members.erase(members.begin(), members.begin() + window_);
    }
    members.push_back(static_cast<int32_t>(position));
  }

  // The last `window` members or fewer; until the next append.
  PositionList last(int64_t round, int64_t bucket) const {
    const auto& members = members_[index(round, bucket)];
    const auto size = static_cast<int64_t>(members.size());
    const int64_t skipped = size > window_ ? size - window_ : 0;
    return {members.data() + skipped, size - skipped};
  }

 private:
  std::size_t index(int64_t round, int64_t bucket) const {
    const int64_t at = round * n_buckets_ + bucket;
    require(bucket >= 0 && bucket < n_buckets_ && at >= 0 &&
                at < static_cast<int64_t>(members_.size()),
            "bucket_history_cpu: there is no bucket ", bucket, " of round ",
            round, ", only ", n_buckets_, " of each round");
    return static_cast<std::size_t>(at);
  }

  int64_t n_buckets_;
  int64_t window_;
  std::vector<std::vector<int32_t>> members_;  // [rounds * n_buckets]
};

}  // namespace reformer
