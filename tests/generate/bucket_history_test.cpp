#include "reformer/generate/bucket_history.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

at::Tensor ids(const std::vector<int64_t>& buckets, int64_t rounds = 1) {
  return at::tensor(buckets, at::kLong)
      .to(at::kUInt16)
      .view({1, 1, rounds, -1});
}

TEST(BucketHistory, HoldsTheLastMembersOfEachBucketInOrder) {
  constexpr int64_t kRounds = 3;
  constexpr int64_t kBuckets = 4;
  for (const int64_t window : {1, 2, 7}) {
    BucketHistory history({1, 1, kRounds, kBuckets, window}, at::kCPU);
    std::vector<std::vector<int32_t>> all(kRounds * kBuckets);
    std::mt19937 random(1);
    for (int32_t position = 0; position < 200; ++position) {
      std::vector<int64_t> buckets(kRounds);
      for (auto& bucket : buckets) bucket = random() % kBuckets;
      const auto last = history.last(ids(buckets, kRounds));
      for (int64_t round = 0; round < kRounds; ++round) {
        auto& before = all[round * kBuckets + buckets[round]];
        const auto n = std::min<int64_t>(window, before.size());
        EXPECT_EQ(std::vector<int32_t>(last[round].data,
                                       last[round].data + last[round].size),
                  std::vector<int32_t>(before.end() - n, before.end()));
        before.push_back(position);
      }
      history.append(ids(buckets, kRounds), {position}, {1});
    }
  }
}

TEST(BucketHistory, RefusesBucketsOutOfRangeAndKeepsNothingOfThem) {
  BucketHistory history({1, 1, 1, /*n_buckets=*/4, /*window=*/3}, at::kCPU);
  EXPECT_THROW(history.append(ids({0, 0, 4}), {0}, {3}), Error);
  EXPECT_THROW(history.last(ids({4})), Error);
  EXPECT_EQ(history.last(ids({0}))[0].size, 0);
}

}  // namespace
}  // namespace reformer
