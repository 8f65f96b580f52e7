#include "reformer/ops/full_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <gtest/gtest.h>

#include "tests/support/cases.h"
#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

AttentionInputs separate_inputs(Padding padding, int64_t length,
                                uint64_t seed) {
  auto inputs =
      make_inputs(Queries::kRandom, padding, {2, 2, length, 40}, seed);
  inputs.k =
      2 *
      make_inputs(Queries::kRandom, padding, {2, 2, length, 40}, seed + 50).q;
  return inputs;
}

TEST(FullAttention, IsTheSoftmaxOverEverything) {
  uint64_t seed = 0;
  for (const int64_t length : {1, 2, 33, 129, 300}) {
    for (const bool causal : {false, true}) {
      for (const auto padding : {Padding::kNone, Padding::kRight,
                                 Padding::kLeft, Padding::kScattered}) {
        SCOPED_TRACE("length " + std::to_string(length) +
                     (causal ? ", causal" : "") + ", padding " +
                     name_of(padding));
        const auto inputs = separate_inputs(padding, length, seed += 100);
        const auto full = [&](const at::Tensor& q, const at::Tensor& k,
                              const at::Tensor& v) {
          return AttentionResult{full_attention(q, k, v, causal, inputs.mask),
                                 {}};
        };
        const Tolerance tolerance(
            inputs, reference::everything(2, length, causal,
                                          /*self_counts=*/true, inputs.mask));
        // Without padding it is LibTorch's kernel, and not ours to improve.
        const double leniency = inputs.mask.defined() ? 1 : 4;
        for_each_instruction_set([&](const std::string& name) {
          tolerance.expect_as_good_as_plain(answer(full, inputs), name,
                                            leniency);
        });
        tolerance.expect_exact(answer(full, inputs.to(at::kDouble)), "float64");
      }
    }
  }
}

TEST(FullAttention, OfOtherLengthsIsCrossAttention) {
  const auto q = normal({2, 3, 50, 32}, 1).to(at::kDouble);
  const auto k = normal({2, 3, 131, 32}, 2).to(at::kDouble);
  const auto v = normal({2, 3, 131, 32}, 3).to(at::kDouble);
  const auto expected =
      std::get<0>(at::_scaled_dot_product_attention_math(q, k, v));
  EXPECT_LT(max_error(full_attention(q, k, v, /*causal=*/false), expected),
            1e-12);
  const auto in_float = full_attention(q.to(at::kFloat), k.to(at::kFloat),
                                       v.to(at::kFloat), /*causal=*/false);
  EXPECT_LT(max_error(in_float, expected), 1e-5);
}

TEST(FullAttention, WithAMaskOfAllRealIsWithoutMask) {
  for (const bool causal : {false, true}) {
    const auto inputs = separate_inputs(Padding::kNone, 100, 5).to(at::kDouble);
    const auto all = make_mask(Padding::kRight, 2, 100).fill_(true);
    const auto attention = [&](const at::Tensor& mask) {
      return full_attention(inputs.q, inputs.k, inputs.v, causal, mask);
    };
    EXPECT_LT(max_error(attention(all), attention({})), 1e-12);
  }
}

void expect_all_others(int64_t length, bool causal, Padding padding,
                       int64_t successor_heads = 0) {
  SCOPED_TRACE("length " + std::to_string(length) + (causal ? ", causal" : "") +
               ", padding " + name_of(padding));
  const int64_t batch = length > 300 ? 1 : 2;
  auto inputs = make_inputs(Queries::kSomeZero, padding,
                            {batch, batch, length, 64}, 100 * length);
  inputs.successor_heads = successor_heads;
  const auto full = [&](const at::Tensor& qk, const at::Tensor&,
                        const at::Tensor& v) {
    return AttentionResult{full_shared_qk_attention(qk, v, causal, inputs.mask,
                                                    inputs.successor_heads),
                           {}};
  };
  const Tolerance tolerance(
      inputs, reference::everything(batch, length, causal,
                                    /*self_counts=*/false, inputs.mask));
  for_each_instruction_set([&](const std::string& name) {
    tolerance.expect_as_good_as_plain(answer(full, inputs), name);
  });
  tolerance.expect_exact(answer(full, inputs.to(at::kDouble)), "float64");
}

TEST(FullSharedQkAttention, IsTheSoftmaxOverAllOthers) {
  for (const bool causal : {false, true}) {
    for (const int64_t length : {1, 2, 33, 129, 700}) {
      for (const auto padding :
           {Padding::kNone, Padding::kLeft, Padding::kScattered}) {
        expect_all_others(length, causal, padding);
      }
    }
    // Several segments of queries that share their keys.
    expect_all_others(2500, causal, Padding::kScattered);
  }
}

TEST(FullSharedQkAttention, OffersTheValuesOfSuccessors) {
  for (const bool causal : {false, true}) {
    for (const int64_t length : {1, 2, 33, 1100}) {
      for (const auto padding :
           {Padding::kNone, Padding::kLeft, Padding::kScattered}) {
        expect_all_others(length, causal, padding, /*successor_heads=*/1);
      }
    }
  }
}

}  // namespace
}  // namespace reformer
