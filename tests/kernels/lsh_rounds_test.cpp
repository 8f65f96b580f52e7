// Hash, sort, intervals and statistics on plain arrays of exactly the right
// size, where the sanitizers see every step beyond them.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "reformer/base/instruction_set.h"
#include "reformer/config/bucket_count.h"
#include "reformer/kernels/bucket_sort.h"
#include "reformer/kernels/interval_statistics.h"
#include "reformer/kernels/lsh_buckets.h"
#include "reformer/kernels/lsh_intervals.h"
#include "reformer/kernels/lsh_rotations.h"

namespace reformer::kernels {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kHeads = 2;
constexpr int64_t kRounds = 3;

struct Rounds {
  int64_t length;
  std::vector<uint16_t> buckets;  // [batch, heads, rounds, length]
  std::vector<int32_t> order;     // [batch, heads, rounds, length]
  std::vector<int32_t> place;     // [batch, heads, length, rounds]
  std::vector<int32_t> interval;  // [batch, heads, length, rounds, 2]
};

template <class T>
std::vector<uint16_t> hash(int64_t length, int64_t d_head, int64_t n_buckets) {
  const int64_t columns = rotation_columns(n_buckets);
  std::vector<float> rotations(kHeads * kRounds * d_head * columns);
  cpu::lsh_rotations(
      {HashKey{1, 2, 3}, rotations.data(), kHeads, kRounds, d_head, columns});
  std::mt19937_64 random(length);
  std::normal_distribution<double> normal;
  std::vector<T> vectors(kBatch * kHeads * length * d_head);
  for (auto& x : vectors) x = static_cast<T>(normal(random));
  std::vector<uint16_t> buckets(kBatch * kHeads * kRounds * length);
  LshBucketsArgs<T> args{};
  args.vectors = {vectors.data(), kHeads * length * d_head, length * d_head,
                  d_head};
  args.rotations = rotations.data();
  args.buckets = buckets.data();
  args.batch = kBatch;
  args.heads = kHeads;
  args.rounds = kRounds;
  args.length = length;
  args.d_head = d_head;
  args.columns = columns;
  for (const int64_t factor : bucket_factors(n_buckets)) {
    args.factors[args.n_factors++] = factor;
  }
  cpu::lsh_buckets(args);
  return buckets;
}

Rounds make_rounds(const std::vector<uint16_t>& buckets, int64_t n_buckets,
                   const bool* mask, WindowRule rule, bool causal) {
  const int64_t length = buckets.size() / (kBatch * kHeads * kRounds);
  Rounds rounds{length, buckets, std::vector<int32_t>(buckets.size()),
                std::vector<int32_t>(buckets.size()),
                std::vector<int32_t>(buckets.size() * 2)};
  cpu::bucket_sort({rounds.buckets.data(), mask, rounds.order.data(),
                    rounds.place.data(), kBatch, kHeads, kRounds, length,
                    n_buckets});
  const std::vector<WindowRule> rules(kRounds, rule);
  cpu::lsh_intervals({rounds.buckets.data(), rounds.order.data(), mask,
                      rules.data(), rounds.interval.data(), kBatch, kHeads,
                      kRounds, length, causal});
  return rounds;
}

// Whether query i may attend to key j, from the definition.
bool attends(const Rounds& rounds, const bool* mask, WindowRule rule,
             bool causal, int64_t head, int64_t round, int64_t i, int64_t j) {
  const int64_t length = rounds.length;
  const auto* real = mask ? mask + head / kHeads * length : nullptr;
  const auto* buckets = &rounds.buckets[(head * kRounds + round) * length];
  const auto place = [&](int64_t at) -> int64_t {
    return rounds.place[(head * length + at) * kRounds + round];
  };
  if (real && !(real[i] && real[j])) return false;
  if (buckets[i] != buckets[j] || (causal && j >= i)) return false;
  const int64_t m = rule.length;
  if (rule.window == Window::kTrailing) {
    return place(i) - place(j) <= m && place(j) - place(i) <= m;
  }
  const int64_t chunks_back = place(i) / m - place(j) / m;
  return chunks_back == 0 || chunks_back == 1;
}

TEST(LshRoundsKernels, SortByBucketThenPositionWithPaddingLast) {
  for (const int64_t length : {1, 33, 257}) {
    const auto buckets = hash<float>(length, /*d_head=*/8, /*n_buckets=*/4);
    std::vector<char> bytes(kBatch * length);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = i % 5 != 0;
    const auto* mask = reinterpret_cast<const bool*>(bytes.data());
    const auto rounds =
        make_rounds(buckets, 4, mask, {Window::kTrailing, 8}, true);
    for (int64_t row = 0; row < kBatch * kHeads * kRounds; ++row) {
      const int64_t head = row / kRounds;
      const auto* order = &rounds.order[row * length];
      const auto key = [&](int64_t s) {
        const int64_t i = order[s];
        const bool real = mask[head / kHeads * length + i];
        return (real ? buckets[row * length + i] : 4) * length + i;
      };
      for (int64_t s = 0; s < length; ++s) {
        if (s > 0) {
          ASSERT_LT(key(s - 1), key(s));
        }
        ASSERT_EQ(
            rounds.place[(head * length + order[s]) * kRounds + row % kRounds],
            s);
      }
    }
  }
}

TEST(LshRoundsKernels, IntervalsHoldWhatTheDefinitionSays) {
  constexpr int64_t kLength = 150;
  const auto buckets = hash<double>(kLength, /*d_head=*/11, /*n_buckets=*/6);
  std::vector<char> bytes(kBatch * kLength);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = i % 7 != 0;
  const auto* padding = reinterpret_cast<const bool*>(bytes.data());
  for (const auto* mask : {padding, static_cast<const bool*>(nullptr)}) {
    for (const auto window : {Window::kChunk, Window::kTrailing}) {
      for (const bool causal : {false, true}) {
        const WindowRule rule{window, 10};
        const auto rounds = make_rounds(buckets, 6, mask, rule, causal);
        for (int64_t at = 0; at < kBatch * kHeads * kLength * kRounds; ++at) {
          const int64_t head = at / (kLength * kRounds);
          const int64_t round = at % kRounds;
          const int64_t i = at / kRounds % kLength;
          for (int64_t j = 0; j < kLength; ++j) {
            if (j == i) continue;
            const int32_t s =
                rounds.place[(head * kLength + j) * kRounds + round];
            const bool held =
                rounds.interval[2 * at] <= s && s < rounds.interval[2 * at + 1];
            ASSERT_EQ(held,
                      attends(rounds, mask, rule, causal, head, round, i, j))
                << "query " << i << ", key " << j << ", window "
                << name_of(window) << (causal ? ", causal" : "");
          }
        }
      }
    }
  }
}

TEST(LshRoundsKernels, HashIntoTheirBucketsWhateverTheInstructionSet) {
  const auto before = instruction_set();
  for (const auto set : supported_instruction_sets()) {
    set_instruction_set(set);
    for (const int64_t n_buckets : {2, 6, 128, 192, 65536}) {
      for (const int64_t length : {1, 17, 1025}) {
        const auto in_float = hash<float>(length, 9, n_buckets);
        const auto in_double = hash<double>(length, 9, n_buckets);
        int64_t differ = 0;
        for (std::size_t i = 0; i < in_float.size(); ++i) {
          ASSERT_LT(in_double[i], n_buckets);
          differ += in_float[i] != in_double[i];
        }
        // Only where rounding decides between two almost equal columns.
        EXPECT_LE(double(differ), 1e-3 * double(in_float.size()))
            << name_of(set) << ", " << n_buckets << " buckets";
      }
    }
  }
  set_instruction_set(before);
}

TEST(LshRoundsKernels, StatisticsCountPairs) {
  constexpr int64_t kLength = 100;
  const auto buckets = hash<float>(kLength, /*d_head=*/8, /*n_buckets=*/2);
  const WindowRule rule{Window::kTrailing, 5};
  const auto rounds = make_rounds(buckets, 2, nullptr, rule, /*causal=*/true);
  IntervalStatisticsArgs args{};
  args.rounds = {rounds.order.data(),    rounds.place.data(),
                 rounds.interval.data(), kHeads * kRounds * kLength,
                 kRounds * kLength,      kHeads * kRounds * kLength,
                 kRounds * kLength,      kHeads * kRounds * kLength * 2,
                 kRounds * kLength * 2,  kRounds};
  args.buckets = rounds.buckets.data();
  args.batch = kBatch;
  args.heads = kHeads;
  args.length = kLength;
  args.bucket_rounds = kRounds;
  args.tile_rows = 16;
  args.causal = true;
  const auto counted = cpu::interval_statistics(args);

  int64_t attended = 0;
  int64_t intervals = 0;
  int64_t in_bucket = 0;
  for (int64_t head = 0; head < kBatch * kHeads; ++head) {
    for (int64_t i = 0; i < kLength; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        int64_t found = 0;
        for (int64_t r = 0; r < kRounds; ++r) {
          const auto* own = &buckets[(head * kRounds + r) * kLength];
          in_bucket += own[i] == own[j];
          found += attends(rounds, nullptr, rule, true, head, r, i, j);
        }
        intervals += found;
        attended += found > 0;
      }
    }
  }
  EXPECT_EQ(counted.queries, kBatch * kHeads * kLength);
  EXPECT_EQ(counted.attended, attended);
  EXPECT_EQ(counted.intervals, intervals);
  EXPECT_EQ(counted.in_bucket, in_bucket);
  EXPECT_EQ(counted.overflow, in_bucket - intervals);
  EXPECT_GT(counted.overflow, 0);
  EXPECT_GE(counted.computed, counted.intervals);
}

}  // namespace
}  // namespace reformer::kernels
