#include "reformer/ops/lsh_intervals.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "reformer/ops/lsh_attention.h"
#include "tests/support/cases.h"
#include "tests/support/reference.h"

namespace reformer {
namespace {

TEST(LshIntervals, MeanTheAttendedSetsOfTheDefinition) {
  for (const auto& lsh : lsh_cases()) {
    if (lsh.length > 200) continue;
    SCOPED_TRACE(lsh.name());
    const auto inputs = lsh.inputs();
    const auto buckets = lsh_attention_buckets(inputs.q, lsh.config, HashKey{});
    const auto rounds = lsh_rounds(buckets, lsh.config, inputs.mask);
    const auto sets = reference::attended_sets(rounds, /*self_counts=*/false);
    const auto expected =
        reference::attended_sets(buckets, lsh.config, inputs.mask);
    ASSERT_EQ(sets.size(), expected.size());  // the local round is the first
    for (std::size_t r = 0; r < sets.size(); ++r) {
      EXPECT_TRUE(sets[r].equal(expected[r].expand_as(sets[r]))) << r;
    }
  }
}

TEST(LshIntervals, OfPaddedPositionsAreEmpty) {
  const auto mask = make_mask(Padding::kScattered, 2, 60);
  const auto buckets = at::zeros({2, 1, 3, 60}, at::kUInt16);
  for (const bool causal : {false, true}) {
    LshConfig config;
    config.causal = causal;
    config.local_window = 5;
    const auto interval = lsh_rounds(buckets, config, mask).interval;
    const auto size = interval.select(4, 1) - interval.select(4, 0);
    const auto padded = mask.logical_not().view({2, 1, 60, 1});
    EXPECT_EQ((size * padded).abs().max().item<int64_t>(), 0);
    EXPECT_GT(size.max().item<int64_t>(), 0);
  }
}

TEST(LshIntervals, AreWholeBucketsWhereTheWindowIsAsLongAsTheSequence) {
  const auto buckets = (normal({1, 2, 2, 90}, 1) > 0).to(at::kUInt16);
  const auto sorted = bucket_sort(buckets, 2);
  const auto same =
      buckets.to(at::kInt).unsqueeze(-1) == buckets.to(at::kInt).unsqueeze(-2);
  for (const auto window : {Window::kChunk, Window::kTrailing}) {
    const std::vector<WindowRule> rules(2, {window, int64_t{1} << 40});
    const auto interval = lsh_intervals(buckets, sorted, rules, false);
    const auto sets = reference::attended_sets(
        IntervalRounds{sorted.order, sorted.place, interval},
        /*self_counts=*/true);
    for (int64_t r = 0; r < 2; ++r) {
      EXPECT_TRUE(sets[r].equal(same.select(2, r))) << name_of(window);
    }
  }
}

}  // namespace
}  // namespace reformer
