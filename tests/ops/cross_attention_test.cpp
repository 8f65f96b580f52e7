// Queries of one sequence, keys of another, some of them padding.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reformer/base/errors.h"
#include "reformer/device/memory_meter.h"
#include "reformer/ops/full_attention.h"
#include "tests/support/cases.h"
#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

constexpr int64_t kBatch = 3;

// q and d_output of one length, k and v of another; mask over the keys, of
// which the first is real in every row.
AttentionInputs cross_inputs(Padding padding, int64_t queries, int64_t keys,
                             uint64_t seed) {
  AttentionInputs inputs;
  inputs.q = 3 * normal({kBatch, 2, queries, 40}, seed);
  inputs.k = normal({kBatch, 2, keys, 40}, seed + 1);
  inputs.v = normal({kBatch, 2, keys, 40}, seed + 2);
  inputs.d_output = normal({kBatch, 2, queries, 40}, seed + 3);
  inputs.mask = make_mask(padding, kBatch, keys);
  if (inputs.mask.defined()) inputs.mask.select(1, 0).fill_(true);
  return inputs;
}

AttentionResult plain(const at::Tensor& q, const at::Tensor& k,
                      const at::Tensor& v, const at::Tensor& mask) {
  auto scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(double(q.size(3)));
  if (mask.defined()) {
    scores = scores.masked_fill(mask.logical_not().unsqueeze(1).unsqueeze(1),
                                -std::numeric_limits<double>::infinity());
  }
  return {at::matmul(at::softmax(scores, 3), v), {}};
}

AttentionAnswer plain_answer(const AttentionInputs& inputs) {
  return answer(
      [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        return plain(q, k, v, inputs.mask);
      },
      inputs);
}

AttentionAnswer cross_answer(const AttentionInputs& inputs) {
  return answer(
      [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        return AttentionResult{cross_attention(q, k, v, inputs.mask), {}};
      },
      inputs);
}

std::vector<at::Tensor> parts_of(const AttentionAnswer& answer) {
  return {answer.output, answer.d_q, answer.d_k, answer.d_v};
}

TEST(CrossAttention, IsTheSoftmaxOverRealKeys) {
  uint64_t seed = 0;
  for (const auto& [queries, keys] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 33}, {33, 1}, {7, 50}, {50, 7}, {129, 700}}) {
    for (const auto padding :
         {Padding::kNone, Padding::kRight, Padding::kScattered}) {
      SCOPED_TRACE(std::to_string(queries) + " queries, " +
                   std::to_string(keys) + " keys, padding " + name_of(padding));
      const auto inputs = cross_inputs(padding, queries, keys, seed += 10);
      const auto exact = parts_of(plain_answer(inputs.to(at::kDouble)));
      const auto wide = parts_of(cross_answer(inputs.to(at::kDouble)));
      const auto slow = parts_of(plain_answer(inputs));
      const auto fast = parts_of(cross_answer(inputs));
      for (size_t i = 0; i < exact.size(); ++i) {
        // Gradients of q and k are small differences of what is this large.
        constexpr double kTerms = 30;
        const double scale = exact[i].abs().max().item<double>() + kTerms;
        EXPECT_LE(max_error(wide[i], exact[i]), 1e-13 * scale) << i;
        // LibTorch's kernel, and not ours to improve.
        EXPECT_LE(max_error(fast[i].to(at::kDouble), exact[i]),
                  4 * (2 * max_error(slow[i].to(at::kDouble), exact[i]) +
                       4 * 0x1p-23 * scale))
            << i;
      }
    }
  }
}

TEST(CrossAttention, PaddedKeysAreNotReadAndGetNoGradient) {
  auto inputs = cross_inputs(Padding::kScattered, 21, 50, 5);
  const auto before = cross_answer(inputs);
  const auto real = inputs.mask.unsqueeze(1).unsqueeze(3);
  inputs.k = at::where(real, inputs.k, 1000.0f);
  inputs.v = at::where(real, inputs.v, -7.0f);
  const auto after = cross_answer(inputs);
  EXPECT_TRUE(at::equal(before.output, after.output));
  EXPECT_TRUE(at::equal(before.d_q, after.d_q));
  for (const auto& d : {after.d_k, after.d_v}) {
    EXPECT_EQ(at::where(real, 0.0f, d).abs().max().item<float>(), 0);
    EXPECT_GT(d.abs().max().item<float>(), 0);
  }
}

TEST(CrossAttention, OfARowWithoutRealKeysIsFinite) {
  auto inputs = cross_inputs(Padding::kRight, 5, 9, 7);
  inputs.mask[1].fill_(false);
  for (const auto& part : parts_of(cross_answer(inputs))) {
    EXPECT_TRUE(part.isfinite().all().item<bool>());
  }
}

TEST(CrossAttention, NeverBuildsAMatrixOfScores) {
  constexpr int64_t kLength = 4096;
  const auto q = normal({1, 1, kLength, 16}, 1);
  const auto mask = make_mask(Padding::kRight, 1, kLength);
  const MemoryMeter meter;
  cross_attention(q, q, q, mask);
  EXPECT_LT(meter.peak_bytes(), kLength * kLength);  // a quarter of them
}

TEST(CrossAttention, RefusesMasksOfTheQueriesLength) {
  const auto inputs = cross_inputs(Padding::kNone, 5, 9, 7);
  EXPECT_THROW(cross_attention(inputs.q, inputs.k, inputs.v,
                               make_mask(Padding::kRight, kBatch, 5)),
               Error);
}

}  // namespace
}  // namespace reformer
