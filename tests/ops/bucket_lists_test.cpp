#include "reformer/ops/bucket_lists.h"

#include <gtest/gtest.h>

#include <random>

namespace reformer {
namespace {

TEST(BucketLists, HoldTheLastMembersOfEachBucketInOrder) {
  constexpr int64_t kRounds = 3;
  constexpr int64_t kBuckets = 4;
  for (const int64_t window : {1, 2, 7}) {
    BucketLists lists(kRounds, kBuckets, window);
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

}  // namespace
}  // namespace reformer
