#include "reformer/generate/bucket_history_cpu.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <random>

#include "reformer/generate/bucket_history.h"

namespace reformer {
namespace {

TEST(CpuBucketHistory, HoldTheLastMembersOfEachBucketInOrder) {
  constexpr int64_t kRounds = 3;
  constexpr int64_t kBuckets = 4;
  for (const int64_t window : {1, 2, 7}) {
    CpuBucketHistory lists(kRounds, kBuckets, window);
    std::vector<std::vector<int32_t>> all(kRounds * kBuckets);
    std::mt19937 random(1);
    for (int32_t position = 0; position < 200; ++position) {
      for (int64_t round = 0; round < kRounds; ++round) {
        const int64_t bucket = random() % kBuckets;
        const auto& before = all[round * kBuckets + bucket];
        const auto n = std::min<int64_t>(window, before.size());
        const auto last = lists.last(round, bucket);
        EXPECT_EQ(std::vector<int32_t>(last.data, last.data + last.size),
                  std::vector<int32_t>(before.end() - n, before.end()));
        lists.append(round, bucket, position);
        all[round * kBuckets + bucket].push_back(position);
      }
    }
  }
}

TEST(CpuBucketHistory, RefuseBucketsThatAreNotThere) {
  CpuBucketHistory lists(/*rounds=*/2, /*n_buckets=*/4, /*window=*/3);
  for (const auto& [round, bucket] :
       {std::pair<int64_t, int64_t>{0, 4}, {1, -1}, {2, 0}, {-1, 0}}) {
    EXPECT_THROW(lists.append(round, bucket, 0), Error);
    EXPECT_THROW(lists.last(round, bucket), Error);
  }
}

TEST(BucketHistory, RefuseBucketsOutOfRangeAndKeepNothingOfThem) {
  BucketHistory members({1, 1, 1, /*n_buckets=*/4, /*window=*/3}, at::kCPU);
  const auto ids = [](const std::vector<int64_t>& buckets) {
    return at::tensor(buckets, at::kLong).to(at::kUInt16).view({1, 1, 1, -1});
  };
  EXPECT_THROW(members.append(ids({0, 0, 4}), {0}, {3}), Error);
  EXPECT_THROW(members.last(ids({4})), Error);
  EXPECT_EQ(members.last(ids({0}))[0].size, 0);
}

}  // namespace
}  // namespace reformer
