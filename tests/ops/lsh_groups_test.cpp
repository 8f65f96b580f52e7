// LSH attention with more rounds than in training, in groups
// (lsh.more_rounds).
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "reformer/base/errors.h"
#include "reformer/ops/lsh_attention.h"
#include "tests/support/cases.h"
#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

constexpr HashKey kKey{/*seed=*/7, /*step=*/11, /*layer=*/3};

// The softmax in which a pair weighs as much as groups of rounds see it.
at::Tensor attended_in_groups(const AttentionInputs& inputs,
                              const at::Tensor& buckets,
                              const LshConfig& config) {
  const int64_t rounds = buckets.size(2);
  at::Tensor groups;
  for (int64_t first = 0; first < rounds; first += config.rounds) {
    const auto some =
        buckets.view(at::kShort)
            .narrow(2, first, std::min(config.rounds, rounds - first));
    const auto seen = reference::union_of(reference::attended_sets(
        some.contiguous().view(at::kUInt16), config, inputs.mask));
    groups = groups.defined() ? groups + seen : seen.to(inputs.q.scalar_type());
  }
  const auto zero_padding = [&](const at::Tensor& x) {
    if (!inputs.mask.defined()) return x;
    return x.masked_fill(inputs.mask.logical_not().view({x.size(0), 1, -1, 1}),
                         0);
  };
  const auto q = zero_padding(inputs.q);
  const auto v = zero_padding(inputs.v);
  const auto scores =
      q.matmul(reference::unit_keys(q).transpose(2, 3)) + groups.log();
  const auto alone = groups.sum(-1, /*keepdim=*/true) == 0;
  const auto weights = scores.masked_fill(alone, 0).softmax(-1);
  return zero_padding(at::where(alone, v,
                                weights.matmul(reference::offered(
                                    v, inputs.mask, inputs.successor_heads))));
}

TEST(LshGroups, InGroupsAPairWeighsAsMuchAsGroupsSeeIt) {
  struct Case {
    Padding padding;
    int64_t local_window;
    bool causal;
    Window window;
  };
  for (const auto& [padding, local_window, causal, window] :
       {Case{Padding::kNone, 0, true, Window::kTrailing},
        {Padding::kScattered, 9, true, Window::kTrailing},
        {Padding::kScattered, 0, false, Window::kTrailing},
        {Padding::kRight, 9, true, Window::kChunk}}) {
    for (const int64_t rounds : {1, 2, 3, 7}) {  // of 7
      auto inputs =
          make_inputs(Queries::kClustered, padding, {2, 3, 130, 24}, 6)
              .to(at::kDouble);
      inputs.successor_heads = 2;
      LshConfig config;
      config.rounds = 7;
      config.chunk_length = 16;
      config.n_buckets = 8;
      config.local_window = local_window;
      config.causal = causal;
      config.window = window;
      config.more_rounds = MoreRounds::kGroups;
      const auto buckets = lsh_attention_buckets(inputs.q, config, kKey);
      config.rounds = rounds;
      const auto expected = attended_in_groups(inputs, buckets, config);
      const auto found = lsh_attention(inputs.q, inputs.v, buckets, config,
                                       inputs.mask, inputs.successor_heads);
      EXPECT_LT(max_error(found, expected), 1e-12)
          << rounds << ", local window " << local_window;
    }
  }
}

TEST(LshGroups, NearHeadsKnowNothingOfGroups) {
  const auto inputs =
      make_inputs(Queries::kRandom, Padding::kScattered, {2, 5, 130, 24}, 6);
  LshConfig config;
  config.rounds = 5;
  config.chunk_length = 16;
  config.n_buckets = 8;
  const auto buckets =
      lsh_attention_buckets(inputs.q, config, kKey).narrow(1, 0, 2);
  const auto with = [&](MoreRounds more_rounds) {
    auto some = config;
    some.rounds = 2;
    some.more_rounds = more_rounds;
    return lsh_attention(inputs.q, inputs.v, buckets, some, inputs.mask,
                         /*successor_heads=*/1, /*near_window=*/20);
  };
  const auto groups = with(MoreRounds::kGroups);
  const auto whole = with(MoreRounds::kUnion);
  EXPECT_TRUE(same_bits(groups.narrow(1, 2, 3), whole.narrow(1, 2, 3)));
  EXPECT_FALSE(same_bits(groups.narrow(1, 0, 2), whole.narrow(1, 0, 2)));
  const auto hashed = lsh_attention(
      inputs.q.narrow(1, 0, 2), inputs.v.narrow(1, 0, 2), buckets,
      [&] {
        auto some = config;
        some.rounds = 2;
        some.more_rounds = MoreRounds::kGroups;
        return some;
      }(),
      inputs.mask, /*successor_heads=*/1);
  EXPECT_TRUE(same_bits(groups.narrow(1, 0, 2), hashed));
}

TEST(LshGroups, AsManyRoundsAsInTrainingAreOneGroup) {
  const auto inputs =
      make_inputs(Queries::kRandom, Padding::kRight, {2, 2, 130, 24}, 6);
  LshConfig config;
  config.rounds = 3;
  config.n_buckets = 8;
  config.chunk_length = 16;
  auto groups = config;
  groups.more_rounds = MoreRounds::kGroups;
  const auto buckets = lsh_attention_buckets(inputs.q, config, kKey);
  const auto with = [&](const LshConfig& of) {
    return lsh_attention(inputs.q, inputs.v, buckets, of, inputs.mask);
  };
  EXPECT_TRUE(same_bits(with(groups), with(config)));
  groups.rounds = 2;
  EXPECT_FALSE(same_bits(with(groups), with(config)));
}

TEST(LshGroups, GroupsDoNotLoseWhatIsNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool in_values : {true, false}) {
    auto inputs =
        make_inputs(Queries::kRandom, Padding::kNone, {1, 1, 64, 8}, 6);
    LshConfig config;
    config.rounds = 4;
    config.n_buckets = 16;  // in some rounds a query sees nobody
    const auto buckets = lsh_attention_buckets(inputs.q, config, kKey);
    (in_values ? inputs.v : inputs.q)[0][0][3][0] = nan;
    const auto sees_it = reference::union_of(reference::attended_sets(
                                                 buckets, config, inputs.mask))
                             .select(3, 3);
    config.rounds = 1;
    config.more_rounds = MoreRounds::kGroups;
    const auto found = lsh_attention(inputs.q, inputs.v, buckets, config);
    EXPECT_TRUE(sees_it.any().item<bool>());
    EXPECT_TRUE(
        found.select(3, 0).isnan().masked_select(sees_it).all().item<bool>())
        << in_values;
  }
}

TEST(LshGroups, GroupsHaveNoGradients) {
  auto inputs = make_inputs(Queries::kRandom, Padding::kNone, {1, 1, 40, 8}, 6);
  LshConfig config;
  config.rounds = 4;
  config.n_buckets = 2;
  const auto buckets = lsh_attention_buckets(inputs.q, config, kKey);
  config.rounds = 2;
  config.more_rounds = MoreRounds::kGroups;
  const auto q = inputs.q.clone().requires_grad_(true);
  EXPECT_NO_THROW(lsh_attention(inputs.q, inputs.v, buckets, config));
  try {
    lsh_attention(q, inputs.v, buckets, config);
    FAIL() << "no Error";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "lsh_attention: gradients take no more than lsh.rounds = 2 "
              "rounds where lsh.more_rounds is groups, got 4");
  }
}

// As every attention is (docs/numerics.md).
TEST(LshGroups, AreTheSameBitsAloneAndInABatchAndForAnyNumberOfThreads) {
  const auto inputs =
      make_inputs(Queries::kClustered, Padding::kNone, {3, 3, 5003, 24}, 6);
  LshConfig config;
  config.rounds = 6;
  config.chunk_length = 32;
  config.n_buckets = 64;
  const auto buckets = lsh_attention_buckets(inputs.q, config, kKey);
  config.rounds = 2;
  config.more_rounds = MoreRounds::kGroups;
  const auto of_rows = [&](int64_t first, int64_t n) {
    return lsh_attention(inputs.q.narrow(0, first, n),
                         inputs.v.narrow(0, first, n),
                         buckets.narrow(0, first, n), config);
  };
  const int before = at::get_num_threads();
  const auto whole = of_rows(0, 3);
  for (const int64_t row : {0, 1, 2}) {
    EXPECT_TRUE(same_bits(whole.narrow(0, row, 1), of_rows(row, 1))) << row;
  }
  at::set_num_threads(1);
  EXPECT_TRUE(same_bits(of_rows(0, 3), whole));
  at::set_num_threads(3);
  EXPECT_TRUE(same_bits(of_rows(0, 3), whole));
  at::set_num_threads(before);
}

}  // namespace
}  // namespace reformer
