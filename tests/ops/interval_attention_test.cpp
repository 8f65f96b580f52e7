#include "reformer/ops/interval_attention.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "reformer/base/errors.h"
#include "reformer/ops/lsh_attention.h"
#include "tests/support/cases.h"
#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

// Any permutations and any intervals, a third of them empty.
IntervalRounds random_rounds(int64_t batch, int64_t heads, int64_t rounds,
                             int64_t length, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  const auto order = at::rand({batch, heads, rounds, length}, generator)
                         .argsort(-1, /*descending=*/false);
  const auto place =
      order.argsort(-1, /*descending=*/false).transpose(2, 3).contiguous();
  const auto ends = at::rand({batch, heads, length, rounds, 2}, generator) *
                    double(length + 1);
  auto interval = std::get<0>(ends.to(at::kInt).sort(-1));
  const auto empty = at::rand({batch, heads, length, rounds}, generator) < 0.3;
  auto end = interval.select(4, 1);
  end.copy_(end.where(empty.logical_not(), interval.select(4, 0)));
  return {order.to(at::kInt), place.to(at::kInt), interval};
}

AttentionAnswer fast_answer(const AttentionInputs& inputs,
                            const IntervalRounds& rounds) {
  return answer(
      [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        return interval_attention(q, k, v, rounds, inputs.mask);
      },
      inputs);
}

void expect_right(const AttentionInputs& inputs, const IntervalRounds& rounds,
                  double leniency = 1) {
  const bool self_counts = inputs.k.defined();
  const auto attended =
      reference::union_of(reference::attended_sets(rounds, self_counts))
          .expand({inputs.q.size(0), inputs.q.size(1), inputs.q.size(2),
                   inputs.q.size(2)});
  const Tolerance tolerance(inputs, attended);
  for_each_instruction_set([&](const std::string& name) {
    tolerance.expect_as_good_as_plain(fast_answer(inputs, rounds), name,
                                      leniency);
  });
  tolerance.expect_exact(fast_answer(inputs.to(at::kDouble), rounds),
                         "float64");
}

AttentionInputs separate_inputs(at::IntArrayRef sizes, uint64_t seed) {
  auto inputs = make_inputs(Queries::kRandom, Padding::kNone, sizes, seed);
  inputs.q = inputs.q * 2;
  inputs.k = normal(sizes, seed + 30) * 2;
  return inputs;
}

AttentionInputs shared_inputs(at::IntArrayRef sizes, uint64_t seed) {
  return make_inputs(Queries::kSomeZero, Padding::kNone, sizes, seed);
}

TEST(IntervalAttention, IsTheSoftmaxOverTheUnionOfAnyIntervals) {
  uint64_t seed = 1;
  for (const int64_t length : {1, 2, 33, 130, 700}) {
    for (const int64_t rounds : {1, 3}) {
      SCOPED_TRACE("length " + std::to_string(length) + ", rounds " +
                   std::to_string(rounds));
      const int64_t heads = length > 200 ? 1 : 2;
      const auto own = random_rounds(2, heads, rounds, length, ++seed);
      expect_right(shared_inputs({2, heads, length, 40}, ++seed), own);
      expect_right(separate_inputs({2, heads, length, 40}, ++seed), own);
    }
  }
}

TEST(IntervalAttention, TakesAnyHeadSizeFrom8To256) {
  for (const int64_t d_head : {8, 9, 15, 16, 17, 31, 33, 100, 255, 256}) {
    SCOPED_TRACE("d_head " + std::to_string(d_head));
    const auto rounds = random_rounds(1, 2, 2, 70, d_head);
    expect_right(shared_inputs({1, 2, 70, d_head}, d_head), rounds);
    expect_right(separate_inputs({1, 2, 70, d_head}, d_head), rounds);
  }
}

TEST(IntervalAttention, SharesRoundsAmongHeadsAndBatch) {
  for (const auto& [batch, heads] :
       {std::pair{1, 1}, std::pair{1, 3}, std::pair{2, 1}}) {
    const auto rounds = random_rounds(batch, heads, 2, 90, 5);
    const auto inputs = shared_inputs({2, 3, 90, 16}, 6);
    const IntervalRounds each{rounds.order.expand({2, 3, 2, 90}),
                              rounds.place.expand({2, 3, 90, 2}),
                              rounds.interval.expand({2, 3, 90, 2, 2})};
    EXPECT_TRUE(
        same_bits(fast_answer(inputs, rounds), fast_answer(inputs, each)));
    expect_right(inputs, rounds);
  }
}

// Copies `x` into a tensor whose memory order is that of `dims`.
at::Tensor laid_out(const at::Tensor& x, at::IntArrayRef dims) {
  const auto stored = x.permute(dims).contiguous();
  std::vector<int64_t> back(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    back[dims[i]] = static_cast<int64_t>(i);
  }
  return stored.permute(back);
}

TEST(IntervalAttention, DoesNotDependOnStrides) {
  const std::vector<int64_t> sizes{2, 3, 100, 24};
  const auto rounds = random_rounds(2, 3, 2, 100, 8);
  for (const bool shared : {true, false}) {
    const auto inputs =
        shared ? shared_inputs(sizes, 9) : separate_inputs(sizes, 9);
    const auto expected = fast_answer(inputs, rounds);
    const auto expect_same = [&](const char* name, const auto& change) {
      const auto changed = [&](const at::Tensor& x) {
        return x.defined() ? change(x) : x;
      };
      const AttentionInputs other{changed(inputs.q),
                                  changed(inputs.k),
                                  changed(inputs.v),
                                  changed(inputs.d_output),
                                  {}};
      ASSERT_TRUE(other.q.equal(inputs.q)) << name;
      EXPECT_TRUE(same_bits(fast_answer(other, rounds), expected)) << name;
    };
    expect_same("heads beside each other", [](const at::Tensor& x) {
      return laid_out(x, {0, 2, 1, 3});
    });
    expect_same("vectors across", [](const at::Tensor& x) {
      return laid_out(x, {0, 1, 3, 2});
    });
    expect_same("part of a wider tensor", [&](const at::Tensor& x) {
      auto wide = at::empty({2, 3, 100, 60}, at::kFloat);
      wide.narrow(3, 7, 24).copy_(x);
      return wide.narrow(3, 7, 24);
    });
    expect_same("every other number", [&](const at::Tensor& x) {
      auto wide = at::empty({2, 3, 100, 24, 2}, at::kFloat);
      wide.select(4, 1).copy_(x);
      return wide.select(4, 1);
    });
  }
  const auto whole = fast_answer(shared_inputs(sizes, 9), rounds);
  const IntervalRounds strided{laid_out(rounds.order, {3, 1, 0, 2}),
                               laid_out(rounds.place, {3, 2, 1, 0}),
                               laid_out(rounds.interval, {4, 3, 0, 1, 2})};
  EXPECT_TRUE(same_bits(fast_answer(shared_inputs(sizes, 9), strided), whole));
}

TEST(IntervalAttention, TakesExpandedTensors) {
  const auto rounds = random_rounds(2, 3, 2, 40, 10);
  for (const std::vector<int64_t>& own : {std::vector<int64_t>{1, 3, 40, 16},
                                          {2, 1, 40, 16},
                                          {2, 3, 1, 16},
                                          {1, 1, 1, 16},
                                          {2, 3, 40, 1}}) {
    AttentionInputs inputs;
    inputs.q = normal(own, 11).expand({2, 3, 40, 16});
    inputs.v = normal(own, 12).expand({2, 3, 40, 16});
    inputs.d_output = at::ones({}, at::kFloat).expand({2, 3, 40, 16});
    const AttentionInputs dense{inputs.q.contiguous(),
                                {},
                                inputs.v.contiguous(),
                                inputs.d_output.contiguous(),
                                {}};
    EXPECT_TRUE(
        same_bits(fast_answer(inputs, rounds), fast_answer(dense, rounds)))
        << own;
  }
}

// Views whose elements lie more than 2^31 apart, in memory that the system
// gives out only where it is touched.
TEST(IntervalAttention, OffsetsAre64Bit) {
  constexpr int64_t kFar = (int64_t{1} << 31) + 64;
  constexpr int64_t kLength = 5;
  at::Tensor memory;
  try {
    memory = at::empty({kFar + 4096}, at::kFloat);
  } catch (const std::exception&) {
    GTEST_SKIP() << "no address space for 8.6 GB";
  }
  const auto inputs = shared_inputs({2, 1, kLength, 8}, 13);
  const auto far_batch = [&](const at::Tensor& x, int64_t offset) {
    return memory.as_strided({2, 1, kLength, 8}, {kFar, 64, 8, 1}, offset)
        .copy_(x);
  };
  // Both rows of the batch within the steps of 2^29 from place to place.
  const auto far_rows = [&](const at::Tensor& x, int64_t offset) {
    return memory
        .as_strided({2, 1, kLength, 8}, {64, 64, int64_t{1} << 29, 1}, offset)
        .copy_(x);
  };
  const AttentionInputs far{far_batch(inputs.q, 0),
                            {},
                            far_rows(inputs.v, 1024),
                            far_batch(inputs.d_output, 2048),
                            {}};
  const auto rounds = random_rounds(2, 1, 2, kLength, 14);
  EXPECT_TRUE(same_bits(fast_answer(far, rounds), fast_answer(inputs, rounds)));
  LshConfig config;
  EXPECT_TRUE(same_bits(lsh_attention_buckets(far.v, config, HashKey{}),
                        lsh_attention_buckets(inputs.v, config, HashKey{})));
}

TEST(IntervalAttention, LoneTokensAttendToThemselves) {
  auto rounds = random_rounds(1, 1, 2, 20, 15);
  rounds.interval.zero_();
  for (const auto& inputs :
       {shared_inputs({1, 1, 20, 8}, 16), separate_inputs({1, 1, 20, 8}, 16)}) {
    const auto alone = fast_answer(inputs, rounds);
    EXPECT_TRUE(alone.output.equal(inputs.v));
    EXPECT_TRUE(alone.lse.isneginf().all().item<bool>());
    EXPECT_TRUE(alone.d_v.equal(inputs.d_output));
    EXPECT_EQ(alone.d_q.abs().max().item<double>(), 0);
  }
  // In an interval of its own place alone, too, if shared.
  const auto own = rounds.place;
  const IntervalRounds self{rounds.order, rounds.place,
                            at::stack({own, own + 1}, -1)};
  const auto inputs = shared_inputs({1, 1, 20, 8}, 17);
  EXPECT_TRUE(fast_answer(inputs, self).output.equal(inputs.v));
}

// q . k of hundreds: weights that underflow, a maximum that moves. Lenient,
// because the backward pass has only the rounded log-sum-exp, and |q| = 320.
TEST(IntervalAttention, SurvivesLargeScores) {
  auto inputs = shared_inputs({1, 2, 150, 64}, 18);
  const auto rounds = random_rounds(1, 2, 3, 150, 19);
  inputs.q = inputs.q * 40;
  expect_right(inputs, rounds, /*leniency=*/2);
  inputs.q = inputs.q * 1e10;
  const auto huge = fast_answer(inputs, rounds);
  for (const auto& x : {huge.output, huge.d_q, huge.d_v}) {
    EXPECT_TRUE(x.isfinite().all().item<bool>());
  }
}

// Its products with do overflow, in the same tiles as everybody's.
TEST(IntervalAttention, AHugeValueThatNobodySeesSpoilsNothing) {
  auto inputs = shared_inputs({1, 1, 50, 16}, 22);
  LshConfig config;
  config.n_buckets = 2;
  const auto rounds = lsh_rounds(at::zeros({1, 1, 1, 50}, at::kUInt16), config);
  const auto ordinary = fast_answer(inputs, rounds);
  inputs.v.select(2, 49).fill_(3e38);  // the last one's, and causal
  const auto huge = fast_answer(inputs, rounds);
  EXPECT_TRUE(same_bits(huge, ordinary));
}

TEST(IntervalAttention, SecondDerivativesAreAnError) {
  const auto rounds = random_rounds(1, 1, 1, 10, 20);
  const auto q = normal({1, 1, 10, 8}, 21).set_requires_grad(true);
  const auto output = interval_attention(q, {}, q, rounds).output.sum();
  EXPECT_THROW(torch::autograd::grad({output}, {q}, {}, /*retain_graph=*/true,
                                     /*create_graph=*/true),
               Error);
}

}  // namespace
}  // namespace reformer
