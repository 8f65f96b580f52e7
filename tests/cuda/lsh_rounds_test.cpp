// Sort, intervals and statistics on the GPU are the CPU's, every integer.
#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include "reformer/base/errors.h"
#include "reformer/ops/bucket_sort.h"
#include "reformer/ops/interval_statistics.h"
#include "reformer/ops/lsh_attention.h"
#include "reformer/ops/lsh_intervals.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

at::Tensor on_cuda(const at::Tensor& x) { return x.defined() ? x.cuda() : x; }

// Half of them in the lower eighth of the buckets.
at::Tensor random_buckets(at::IntArrayRef sizes, int64_t n_buckets) {
  const auto all = at::randint(n_buckets, sizes, at::kLong);
  const auto few =
      at::randint(std::max<int64_t>(n_buckets / 8, 1), sizes, at::kLong);
  const auto which = at::randint(2, sizes, at::kLong);
  return (all * which + few * (1 - which)).to(at::kUInt16);
}

TEST(BucketSortCuda, IsTheCpusSort) {
  for (const int64_t length : {1, 33, 1000, 1024, 1025, 4097, 8192, 20011}) {
    for (const int64_t n_buckets : {1, 2, 64, 1000, 2048, 4096, 65536}) {
      for (const auto padding : {Padding::kNone, Padding::kScattered}) {
        for (const int64_t natural : {0, 1}) {
          for (const int64_t rounds : {1, 3}) {
            SCOPED_TRACE("length " + std::to_string(length) + ", " +
                         std::to_string(n_buckets) + " buckets, padding " +
                         name_of(padding) + ", natural rounds " +
                         std::to_string(natural) + " and " +
                         std::to_string(rounds));
            const auto buckets =
                random_buckets({2, 2, rounds, length}, n_buckets);
            const auto mask = make_mask(padding, 2, length);
            const auto expected =
                bucket_sort(buckets, n_buckets, mask, natural);
            const auto sorted =
                bucket_sort(buckets.cuda(), n_buckets, on_cuda(mask), natural);
            ASSERT_TRUE(sorted.order.cpu().equal(expected.order));
            ASSERT_TRUE(sorted.place.cpu().equal(expected.place));
            ASSERT_TRUE(sorted.starts.cpu().equal(expected.starts));
          }
        }
      }
    }
  }
}

TEST(BucketSortCuda, SortsManyRowsAndOneLongOne) {
  for (const auto& sizes :
       std::vector<std::vector<int64_t>>{{64, 8, 9, 100}, {1, 1, 2, 300000}}) {
    const auto buckets = random_buckets(sizes, 1024);
    const auto expected = bucket_sort(buckets, 1024);
    const auto sorted = bucket_sort(buckets.cuda(), 1024);
    EXPECT_TRUE(sorted.order.cpu().equal(expected.order));
    EXPECT_TRUE(sorted.place.cpu().equal(expected.place));
  }
}

TEST(BucketSortCuda, TakesBucketsOutOfRangeForTheLast) {
  const auto buckets = random_buckets({1, 2, 3, 5000}, 100);
  const auto sorted = bucket_sort(buckets.cuda(), 64);
  const auto clamped = buckets.to(at::kInt).clamp(0, 63).to(at::kUInt16);
  EXPECT_TRUE(sorted.order.cpu().equal(bucket_sort(clamped, 64).order));
}

TEST(LshIntervalsCuda, AreTheCpus) {
  LshConfig config;
  config.chunk_length = 10;
  for (const int64_t length : {1, 33, 1000, 9001}) {
    for (const int64_t n_buckets : {2, 64, 4096}) {
      for (const auto padding :
           {Padding::kNone, Padding::kLeft, Padding::kScattered}) {
        for (const auto window : {Window::kChunk, Window::kTrailing}) {
          for (const bool causal : {false, true}) {
            for (const int64_t local_window : {0, 7, 100000}) {
              config.n_buckets = n_buckets;
              config.window = window;
              config.causal = causal;
              config.local_window = local_window;
              SCOPED_TRACE("length " + std::to_string(length) + ", " +
                           std::to_string(n_buckets) + " buckets, padding " +
                           name_of(padding) + ", " + name_of(window) +
                           (causal ? ", causal" : "") + ", local " +
                           std::to_string(local_window));
              const auto buckets = random_buckets({2, 2, 2, length}, n_buckets);
              const auto mask = make_mask(padding, 2, length);
              const auto expected = lsh_rounds(buckets, config, mask);
              const auto rounds =
                  lsh_rounds(buckets.cuda(), config, on_cuda(mask));
              ASSERT_TRUE(rounds.order.cpu().equal(expected.order));
              ASSERT_TRUE(rounds.place.cpu().equal(expected.place));
              ASSERT_TRUE(rounds.interval.cpu().equal(expected.interval));
              std::vector<WindowRule> rules(2, {window, config.chunk_length});
              if (local_window > 0) {
                rules.insert(rules.begin(), {Window::kTrailing, local_window});
              }
              const auto sorted = bucket_sort(buckets.cuda(), n_buckets,
                                              on_cuda(mask), local_window > 0);
              const auto by_themselves = lsh_intervals(
                  buckets.cuda(), sorted, rules, causal, on_cuda(mask));
              ASSERT_TRUE(by_themselves.cpu().equal(expected.interval));
            }
          }
        }
      }
    }
  }
}

TEST(IntervalStatisticsCuda, AreTheCpus) {
  LshConfig config;
  config.chunk_length = 20;
  config.n_buckets = 16;
  for (const auto padding : {Padding::kNone, Padding::kScattered}) {
    for (const bool causal : {false, true}) {
      for (const int64_t local_window : {0, 9}) {
        config.causal = causal;
        config.local_window = local_window;
        const auto buckets = random_buckets({2, 3, 4, 1001}, 16);
        const auto mask = make_mask(padding, 2, 1001);
        const auto expected = lsh_statistics(buckets, config, mask);
        const auto counted =
            lsh_statistics(buckets.cuda(), config, on_cuda(mask));
        EXPECT_EQ(counted.keys_per_query, expected.keys_per_query);
        EXPECT_EQ(counted.computed_per_query, expected.computed_per_query);
        EXPECT_EQ(counted.overflow, expected.overflow);
        EXPECT_GT(counted.overflow, 0);
      }
    }
  }
}

TEST(LshRoundsCuda, RefuseTensorsOfTwoDevices) {
  const auto buckets = random_buckets({1, 1, 1, 10}, 2);
  const auto mask = make_mask(Padding::kRight, 1, 10);
  EXPECT_THROW(bucket_sort(buckets.cuda(), 2, mask), Error);
  EXPECT_THROW(bucket_sort(buckets, 2, mask.cuda()), Error);
  const auto sorted = bucket_sort(buckets.cuda(), 2);
  EXPECT_THROW(lsh_intervals(buckets.cuda(), {sorted.order, {}, {}},
                             {{Window::kTrailing, 1}}, true),
               Error);
}

TEST(LshRoundsCuda, RefuseMoreRoundsThanTheirRulesFit) {
  LshConfig config;
  config.n_buckets = 2;
  EXPECT_THROW(lsh_rounds(random_buckets({1, 1, 65, 10}, 2).cuda(), config),
               Error);
}

}  // namespace
}  // namespace reformer
