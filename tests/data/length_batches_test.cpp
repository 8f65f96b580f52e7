#include "reformer/data/length_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "reformer/data/row_key.h"

namespace reformer {
namespace {

constexpr int64_t kLongest = 90;

// Targets are about as long as their sources.
std::vector<PairLengths> some_pairs(int32_t count) {
  std::vector<PairLengths> pairs;
  uint32_t state = 7;
  for (int32_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    const auto source = static_cast<int32_t>(2 + (state >> 8) % 60);
    const auto more = static_cast<int32_t>((state >> 20) % 9);
    pairs.push_back({source, std::max(2, source + more - 4)});
  }
  return pairs;
}

LengthBatches::EpochKey keys(int64_t seed) {
  return [seed](int64_t epoch, int64_t purpose) {
    return row_key(seed, Draw::kTranslationOrder, epoch, purpose);
  };
}

TEST(LengthBatches, AnEpochTakesEveryPairOnce) {
  const auto pairs = some_pairs(1000);
  const LengthBatches batches(pairs, {2048, 0, kLongest});
  for (const int64_t epoch : {0, 1, 5}) {
    std::multiset<int64_t> taken;
    for (int64_t i = 0; i < batches.count(); ++i) {
      const auto batch =
          batches.shuffled_batch(epoch * batches.count() + i, keys(3));
      taken.insert(batch.pairs.begin(), batch.pairs.end());
    }
    EXPECT_EQ(taken.size(), 1000U);
    EXPECT_EQ(std::set<int64_t>(taken.begin(), taken.end()).size(), 1000U);
  }
}

TEST(LengthBatches, ABatchKeepsToItsLimits) {
  const auto pairs = some_pairs(1000);
  const LengthBatches by_tokens(pairs, {2048, 0, kLongest});
  const LengthBatches by_rows(pairs, {0, 32, kLongest});
  for (const auto* batches : {&by_tokens, &by_rows}) {
    for (int64_t i = 0; i < batches->count(); ++i) {
      const auto batch = batches->shuffled_batch(i, keys(3));
      const int64_t rows = std::ssize(batch.pairs);
      if (batches == &by_tokens) {
        EXPECT_LE(rows * (batch.source_length + batch.target_length), 2048);
      } else {
        EXPECT_LE(rows, 32);
      }
      for (const int64_t pair : batch.pairs) {
        EXPECT_LE(pairs[size_t(pair)].source, batch.source_length);
        EXPECT_LE(pairs[size_t(pair)].target, batch.target_length);
      }
      EXPECT_LE(batch.source_length, kLongest);
      EXPECT_LE(batch.target_length, kLongest);
    }
  }
}

// Like lengths come together: little is padding, and batches are full.
TEST(LengthBatches, LittleIsPadding) {
  const auto pairs = some_pairs(20000);
  const LengthBatches batches(pairs, {4096, 0, kLongest});
  int64_t real = 0;
  int64_t padded = 0;
  for (int64_t i = 0; i < batches.count(); ++i) {
    const auto batch = batches.in_order(i);
    for (const int64_t pair : batch.pairs) {
      real += pairs[size_t(pair)].source + pairs[size_t(pair)].target;
    }
    padded +=
        std::ssize(batch.pairs) * (batch.source_length + batch.target_length);
  }
  EXPECT_LT(double(padded), 1.15 * double(real));
  EXPECT_GT(double(padded), 0.9 * 4096 * double(batches.count()));
}

TEST(LengthBatches, TheOrderIsOfTheSeedAndTheEpoch) {
  const auto pairs = some_pairs(1000);
  const LengthBatches batches(pairs, {2048, 0, kLongest});
  const LengthBatches again(pairs, {2048, 0, kLongest});
  const auto order = [&](const LengthBatches& of, int64_t epoch, int64_t seed) {
    std::vector<std::vector<int64_t>> all;
    for (int64_t i = 0; i < of.count(); ++i) {
      all.push_back(
          of.shuffled_batch(epoch * of.count() + i, keys(seed)).pairs);
    }
    return all;
  };
  EXPECT_EQ(order(batches, 1, 3), order(again, 1, 3));
  EXPECT_NE(order(batches, 1, 3), order(batches, 2, 3));
  EXPECT_NE(order(batches, 1, 3), order(batches, 1, 4));
  // Not only the batches move: other pairs come together.
  const auto grouped = [](std::vector<std::vector<int64_t>> all) {
    std::set<std::set<int64_t>> groups;
    for (const auto& one : all) groups.emplace(one.begin(), one.end());
    return groups;
  };
  EXPECT_NE(grouped(order(batches, 1, 3)), grouped(order(batches, 2, 3)));
}

TEST(LengthBatches, OnePairIsABatch) {
  const LengthBatches batches({{5, 90}}, {180, 0, kLongest});
  ASSERT_EQ(batches.count(), 1);
  EXPECT_EQ(batches.shuffled_batch(17, keys(0)).pairs,
            (std::vector<int64_t>{0}));
}

}  // namespace
}  // namespace reformer
