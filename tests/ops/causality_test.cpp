// Who sees the future: nobody under `trailing`, whatever the data.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "reformer/ops/interval_statistics.h"
#include "reformer/ops/lsh_attention.h"
#include "tests/support/cases.h"
#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

constexpr HashKey kKey{/*seed=*/1, /*step=*/2, /*layer=*/3};

LshConfig causal_config(Window window) {
  LshConfig config;
  config.rounds = 3;
  config.chunk_length = 16;
  config.n_buckets = 8;
  config.local_window = 4;
  config.window = window;
  return config;
}

// Positions from `cut` on replaced by other tokens, `scale` times as large.
at::Tensor with_other_future(const at::Tensor& x, int64_t cut, double scale) {
  const int64_t future = x.size(2) - cut;
  const auto other =
      make_queries(Queries::kClustered,
                   {x.size(0), x.size(1), future, x.size(3)}, 1000 + cut);
  return at::cat({x.narrow(2, 0, cut), scale * other.to(x.scalar_type())}, 2);
}

bool same_sets_before(int64_t cut, const reference::AttendedSets& a,
                      const reference::AttendedSets& b) {
  for (std::size_t round = 0; round < a.size(); ++round) {
    if (!a[round].narrow(2, 0, cut).equal(b[round].narrow(2, 0, cut))) {
      return false;
    }
  }
  return true;
}

// Hashes qk and recovers the attended sets from the orders and intervals.
reference::AttendedSets sets_of(const at::Tensor& qk, const LshConfig& config) {
  return reference::attended_sets(
      lsh_rounds(lsh_attention_buckets(qk, config, kKey), config),
      /*self_counts=*/false);
}

double overflow_of(const at::Tensor& qk, const LshConfig& config) {
  return lsh_statistics(lsh_attention_buckets(qk, config, kKey), config)
      .overflow;
}

void expect_future_unseen(const at::Tensor& qk, const at::Tensor& v,
                          const LshConfig& config, bool without_overflow) {
  const auto sets = sets_of(qk, config);
  const int64_t successor_heads = (qk.size(1) + 1) / 2;
  const auto attend = [&](const at::Tensor& queries, const at::Tensor& values) {
    return lsh_attention(queries, values, config, kKey, /*mask=*/{},
                         successor_heads);
  };
  const auto output = attend(qk, v);
  const double tolerance =
      qk.scalar_type() == at::kDouble ? 1e-13 : 1e-5;  // rounding
  for (const int64_t cut : {1, 2, 37, 150, 299}) {
    for (const double scale : {1.0, 1e10}) {
      SCOPED_TRACE("cut at " + std::to_string(cut) + ", future scaled by " +
                   std::to_string(scale));
      const auto other_qk = with_other_future(qk, cut, scale);
      const auto other_v = with_other_future(v, cut, scale);
      if (without_overflow) {
        ASSERT_EQ(overflow_of(other_qk, config), 0);
      }
      EXPECT_TRUE(same_sets_before(cut, sets, sets_of(other_qk, config)));
      const auto other = attend(other_qk, other_v);
      EXPECT_LT(max_error(output.narrow(2, 0, cut), other.narrow(2, 0, cut)),
                tolerance);
    }
  }
}

TEST(Causality, TrailingNeverSeesTheFutureUnderOverflow) {
  const auto config = causal_config(Window::kTrailing);
  const auto qk = make_queries(Queries::kClustered, {2, 2, 300, 32}, 1);
  const auto v = normal({2, 2, 300, 32}, 2);
  ASSERT_GT(overflow_of(qk, config), 0.1);
  for_each_instruction_set([&](const std::string& name) {
    SCOPED_TRACE(name);
    expect_future_unseen(qk, v, config, /*without_overflow=*/false);
  });
  expect_future_unseen(qk.to(at::kDouble), v.to(at::kDouble), config,
                       /*without_overflow=*/false);
}

TEST(Causality, APrefixIsWhatTheWholeGivesUnderTrailing) {
  const auto config = causal_config(Window::kTrailing);
  const auto qk =
      make_queries(Queries::kClustered, {1, 2, 300, 32}, 3).to(at::kDouble);
  const auto v = normal({1, 2, 300, 32}, 4).to(at::kDouble);
  const auto whole = lsh_attention(qk, v, config, kKey);
  for (const int64_t length : {1, 16, 99, 299}) {
    const auto prefix = lsh_attention(qk.narrow(2, 0, length),
                                      v.narrow(2, 0, length), config, kKey);
    EXPECT_LT(max_error(prefix, whole.narrow(2, 0, length)), 1e-13) << length;
  }
}

TEST(Causality, ChunkDoesNotSeeTheFutureWithoutOverflow) {
  auto config = causal_config(Window::kChunk);
  config.chunk_length = 150;  // own and previous chunk hold all 300
  const auto qk = make_queries(Queries::kClustered, {2, 2, 300, 32}, 5);
  const auto v = normal({2, 2, 300, 32}, 6);
  ASSERT_EQ(overflow_of(qk, config), 0);
  expect_future_unseen(qk, v, config, /*without_overflow=*/true);

  // Short chunks too, if the buckets are shorter.
  config.chunk_length = 32;
  config.n_buckets = 128;
  const auto spread = normal({2, 2, 300, 32}, 7);
  ASSERT_EQ(overflow_of(spread, config), 0);
  const auto other =
      at::cat({spread.narrow(2, 0, 200), normal({2, 2, 100, 32}, 8)}, 2);
  ASSERT_EQ(overflow_of(other, config), 0);
  EXPECT_TRUE(
      same_sets_before(200, sets_of(spread, config), sets_of(other, config)));
}

// Chunks of 4, positions 0 to 7 in bucket 1. As long as position 8 is there
// too, query 7 sits at place 7 and sees from place 0. In bucket 0 it pushes
// everybody one place on: query 7 into the next chunk, which sees from place 4.
TEST(Causality, ChunkSeesTheFutureUnderOverflow) {
  auto config = causal_config(Window::kChunk);
  config.chunk_length = 4;
  config.local_window = 0;
  auto buckets = at::ones({1, 1, 1, 9}, at::kInt);
  const auto seen_by_7 = [&] {
    const auto sets = reference::attended_sets(
        lsh_rounds(buckets.to(at::kUInt16), config), /*self_counts=*/false);
    return sets[0][0][0][7].sum().item<int64_t>();
  };
  EXPECT_EQ(seen_by_7(), 7);
  buckets[0][0][0][8] = 0;
  EXPECT_EQ(seen_by_7(), 4);
  config.window = Window::kTrailing;
  EXPECT_EQ(seen_by_7(), 4);
  buckets[0][0][0][8] = 1;
  EXPECT_EQ(seen_by_7(), 4);
}

}  // namespace
}  // namespace reformer
