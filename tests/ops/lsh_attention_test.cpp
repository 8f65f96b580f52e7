#include "reformer/ops/lsh_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "reformer/config/bucket_count.h"
#include "reformer/ops/full_attention.h"
#include "reformer/ops/local_attention.h"
#include "reformer/ops/lsh_buckets.h"
#include "reformer/ops/lsh_rotations.h"
#include "tests/support/cases.h"
#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

constexpr HashKey kKey{/*seed=*/7, /*step=*/11, /*layer=*/3};

// lsh_attention's output and gradients; the log-sum-exp from the operation
// beneath it, whose output must be the same.
AttentionAnswer fast_answer(const AttentionInputs& inputs,
                            const at::Tensor& buckets,
                            const LshConfig& config) {
  const auto rounds = lsh_rounds(buckets, config, inputs.mask);
  return answer(
      [&](const at::Tensor& qk, const at::Tensor&, const at::Tensor& v) {
        const auto below = interval_attention_forward(
            qk, {}, v, rounds, inputs.mask, inputs.successor_heads);
        const auto output = lsh_attention(qk, v, buckets, config, inputs.mask,
                                          inputs.successor_heads);
        EXPECT_TRUE(same_bits(output.detach(), below.output.detach()));
        return AttentionResult{output, below.lse};
      },
      inputs);
}

TEST(LshAttention, IsTheSoftmaxOverTheUnionInEveryCaseOfTheCover) {
  for (const auto& lsh : lsh_cases()) {
    SCOPED_TRACE(lsh.name());
    const auto inputs = lsh.inputs();
    const auto buckets = lsh_attention_buckets(inputs.q, lsh.config, kKey);
    const auto attended = reference::union_of(
        reference::attended_sets(buckets, lsh.config, inputs.mask));
    const Tolerance tolerance(inputs, attended);
    for_each_instruction_set([&](const std::string& name) {
      tolerance.expect_as_good_as_plain(
          fast_answer(inputs, buckets, lsh.config), name);
    });
    tolerance.expect_exact(
        fast_answer(inputs.to(at::kDouble), buckets, lsh.config), "float64");
  }
}

TEST(PairwiseCover, HoldsEveryPairInFewCases) {
  const std::vector<int> values{8, 4, 4, 3, 3, 2, 2, 4, 5};
  const auto rows = pairwise_cover(values);
  for (std::size_t f = 0; f < values.size(); ++f) {
    for (std::size_t g = 0; g < f; ++g) {
      std::set<std::pair<int, int>> met;
      for (const auto& row : rows) met.insert({row[f], row[g]});
      EXPECT_EQ(met.size(), std::size_t(values[f] * values[g])) << f << g;
    }
  }
  EXPECT_LE(rows.size(), 50u);  // 40 is the least, 92160 is the product
}

TEST(LshAttention, LogNOfThePaperEqualsTheUnionAndTheFirstCollision) {
  for (const auto& lsh : lsh_cases()) {
    if (lsh.length > 200 || lsh.config.rounds == 1) continue;
    SCOPED_TRACE(lsh.name());
    auto inputs = lsh.inputs().to(at::kDouble);
    inputs.successor_heads = 0;  // the paper knows none
    const auto buckets = lsh_attention_buckets(inputs.q, lsh.config, kKey);
    const auto sets =
        reference::attended_sets(buckets, lsh.config, inputs.mask);
    const auto by_rounds = answer(
        [&](const at::Tensor& qk, const at::Tensor&, const at::Tensor& v) {
          return reference::attention_by_rounds(qk, v, sets, inputs.mask);
        },
        inputs);
    const Tolerance tolerance(inputs, reference::union_of(sets));
    tolerance.expect_exact(by_rounds, "the paper's formulation");
    tolerance.expect_exact(fast_answer(inputs, buckets, lsh.config),
                           "first collision");
  }
}

TEST(LshAttention, WithGivenBucketsIsWhatTheirKeyGives) {
  const auto inputs =
      make_inputs(Queries::kClustered, Padding::kRight, {2, 2, 300, 40}, 1);
  LshConfig config;
  config.rounds = 3;
  config.chunk_length = 32;
  config.local_window = 10;
  for (const int64_t n_buckets : {0, 8, 192}) {
    config.n_buckets = n_buckets;
    const auto from_key = answer(
        [&](const at::Tensor& qk, const at::Tensor&, const at::Tensor& v) {
          return AttentionResult{
              lsh_attention(qk, v, config, kKey, inputs.mask), {}};
        },
        inputs);
    const auto buckets = lsh_attention_buckets(inputs.q, config, kKey);
    EXPECT_EQ(buckets.size(2), 3);
    const auto from_buckets = answer(
        [&](const at::Tensor& qk, const at::Tensor&, const at::Tensor& v) {
          auto other_rounds = config;
          other_rounds.rounds = 7;  // not read
          return AttentionResult{
              lsh_attention(qk, v, buckets, other_rounds, inputs.mask), {}};
        },
        inputs);
    EXPECT_TRUE(same_bits(from_key, from_buckets)) << n_buckets;
  }
}

TEST(LshAttention, HeadsWithoutBucketsSeeTheLastPositionsAlone) {
  constexpr int64_t kHashed = 2;
  constexpr int64_t kNear = 20;
  for (const auto padding : {Padding::kNone, Padding::kScattered}) {
    for (const bool causal : {true, false}) {
      auto inputs = make_inputs(Queries::kRandom, padding, {2, 5, 130, 24}, 6);
      for (auto* x : {&inputs.q, &inputs.v, &inputs.d_output}) {
        *x = by_positions(*x);
      }
      LshConfig config;
      config.chunk_length = 16;
      config.n_buckets = 8;
      config.local_window = 4;
      config.causal = causal;
      const auto buckets =
          lsh_attention_buckets(inputs.q, config, kKey).narrow(1, 0, kHashed);
      const auto together = answer(
          [&](const at::Tensor& qk, const at::Tensor&, const at::Tensor& v) {
            return AttentionResult{
                lsh_attention(qk, v, buckets, config, inputs.mask,
                              /*successor_heads=*/1, kNear),
                {}};
          },
          inputs);
      const auto apart = answer(
          [&](const at::Tensor& qk, const at::Tensor&, const at::Tensor& v) {
            const auto hashed = [&](const at::Tensor& x) {
              return x.narrow(1, 0, kHashed);
            };
            const auto near = [&](const at::Tensor& x) {
              return x.narrow(1, kHashed, 5 - kHashed);
            };
            return AttentionResult{
                at::cat({lsh_attention(hashed(qk), hashed(v), buckets, config,
                                       inputs.mask, /*successor_heads=*/1),
                         local_attention(near(qk), near(v),
                                         {kNear, Window::kTrailing, causal},
                                         inputs.mask)},
                        1),
                {}};
          },
          inputs);
      EXPECT_TRUE(same_bits(together, apart));
    }
  }
}

TEST(LshAttention, GradientsOfASumReachValuesAloneInAllHeads) {
  const auto qk = normal({2, 3, 40, 8}, 1).to(at::kDouble);
  LshConfig config;
  config.chunk_length = 8;
  config.n_buckets = 4;
  const auto buckets = lsh_attention_buckets(qk, config, kKey).narrow(1, 0, 1);
  const auto v = normal(qk.sizes(), 2).to(at::kDouble).requires_grad_();
  lsh_attention(qk, v, buckets, config, {}, 0, /*near_window=*/5)
      .sum()
      .backward();
  // Each query's weights add up to 1, whoever gets them.
  const auto received = v.grad().sum(2);
  EXPECT_LT((received - 40).abs().max().item<double>(), 1e-12);
}

TEST(LshAttention, HashesWithTheRotationsOfItsKey) {
  const auto qk = normal({2, 3, 200, 16}, 2);
  LshConfig config;
  config.n_buckets = 64;
  const auto expected =
      lsh_buckets(qk, lsh_rotations(kKey, 3, config.rounds, 16, 64), 64);
  EXPECT_TRUE(same_bits(lsh_attention_buckets(qk, config, kKey), expected));
  // Of no n_buckets: the default for this length.
  config.n_buckets = 0;
  config.chunk_length = 5;
  const auto buckets = lsh_attention_buckets(qk, config, kKey).to(at::kLong);
  const int64_t largest = buckets.max().item<int64_t>();
  EXPECT_LT(largest, default_bucket_count(200, 5));
  EXPECT_GT(largest, default_bucket_count(200, 5) / 2);
}

TEST(LshAttention, ARowOfPaddingAloneIsZeroAndGetsNoGradient) {
  auto inputs =
      make_inputs(Queries::kRandom, Padding::kRight, {3, 2, 70, 24}, 3);
  inputs.mask[1].fill_(false);
  for (auto* x : {&inputs.q, &inputs.v, &inputs.d_output}) {
    x->select(0, 1).fill_(std::numeric_limits<float>::quiet_NaN());
  }
  LshConfig config;
  config.chunk_length = 16;
  config.local_window = 4;
  const auto buckets = lsh_attention_buckets(inputs.q, config, kKey);
  const auto result = fast_answer(inputs, buckets, config);
  for (const auto& x : {result.output, result.d_q, result.d_v}) {
    EXPECT_TRUE((x[1] == 0).all().item<bool>());
    EXPECT_TRUE(x.isfinite().all().item<bool>());
  }
  EXPECT_TRUE(result.lse[1].isneginf().all().item<bool>());
}

TEST(LshAttention, IsExactWhereTheLocalWindowHoldsEverything) {
  for (const bool causal : {false, true}) {
    const auto inputs =
        make_inputs(Queries::kRandom, Padding::kScattered, {2, 2, 150, 32}, 4)
            .to(at::kDouble);
    LshConfig config;
    config.local_window = 150;
    config.causal = causal;
    const auto lsh =
        lsh_attention(inputs.q, inputs.v, config, kKey, inputs.mask);
    const auto exact =
        full_shared_qk_attention(inputs.q, inputs.v, causal, inputs.mask);
    EXPECT_LT(max_error(lsh, exact), 1e-12);
  }
}

// 64 directions with noise: a query's weight lies on its own direction, and
// one hash finds only a part of it.
TEST(LshAttention, MoreRoundsComeCloserToExact) {
  const auto directions = normal({64, 32}, 5);
  const auto which =
      normal({1, 4, 1024}, 6).mul(1e4).to(at::kLong).remainder(64).flatten();
  const auto qk = directions.index_select(0, which).view({1, 4, 1024, 32}) +
                  0.4 * normal({1, 4, 1024, 32}, 7);
  const auto v = normal({1, 4, 1024, 32}, 8);
  const auto exact = full_shared_qk_attention(qk, v, /*causal=*/true);
  double last = std::numeric_limits<double>::infinity();
  for (const int64_t rounds : {1, 2, 4, 8, 16}) {
    LshConfig config;
    config.rounds = rounds;
    config.n_buckets = 32;
    const auto output = lsh_attention(qk, v, config, kKey);
    const double error = (output - exact).square().mean().item<double>();
    EXPECT_LT(error, 0.8 * last) << rounds << " rounds";
    last = error;
  }
}

}  // namespace
}  // namespace reformer
