#include "reformer/ops/short_convolution.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/support/cases.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

struct Answer {
  at::Tensor y;
  at::Tensor d_x;
  at::Tensor d_weight;
};

Answer answer_to(const at::Tensor& given, const at::Tensor& filters,
                 const at::Tensor& d) {
  const auto x = by_positions(given).detach();
  x.requires_grad_();
  const auto weight = filters.detach().clone().requires_grad_();
  const auto y = short_convolution(x, weight);
  y.backward(d);
  return {y.detach(), x.grad(), weight.grad()};
}

double relative_to(const at::Tensor& found, const at::Tensor& exact) {
  return max_error(found.cpu().to(at::kDouble), exact) /
         exact.abs().max().item<double>();
}

TEST(ShortConvolutionCuda, IsTheCpusToRounding) {
  for (const int64_t taps : {1, 2, 3, 4}) {
    for (const int64_t d_head : {8, 24, 64, 128}) {
      for (const int64_t length : {1, 31, 33, 1000}) {
        for (const auto type : {at::kFloat, at::kBFloat16}) {
          const auto x = normal({2, 3, length, d_head}, 1).to(type);
          const auto d = normal(x.sizes(), 2).to(type);
          const auto weight = normal({taps, 3, d_head}, 3);
          const auto exact = answer_to(
              x.to(at::kDouble), weight.to(at::kDouble), d.to(at::kDouble));
          const auto found = answer_to(x.cuda(), weight.cuda(), d.cuda());
          const double bar = type == at::kFloat ? 1e-5 : 0x1p-8;
          EXPECT_LT(relative_to(found.y, exact.y), bar);
          EXPECT_LT(relative_to(found.d_x, exact.d_x), bar);
          if (length == 1) {  // nothing before: no gradient
            EXPECT_EQ(found.d_weight.abs().max().item<float>(), 0);
            continue;
          }
          EXPECT_LT(relative_to(found.d_weight, exact.d_weight), 1e-5)
              << taps << " taps, " << d_head << " columns, " << length;
        }
      }
    }
  }
}

// At the size at which models are trained.
TEST(ShortConvolutionCuda, IsTheSameBitsTwiceAndRightAt64K) {
  const auto x = normal({1, 8, 65536, 64}, 1).to(at::kBFloat16);
  const auto d = normal(x.sizes(), 2).to(at::kBFloat16);
  const auto weight = normal({3, 8, 64}, 3);
  const auto once = answer_to(x.cuda(), weight.cuda(), d.cuda());
  const auto twice = answer_to(x.cuda(), weight.cuda(), d.cuda());
  EXPECT_TRUE(same_bits(once.y.cpu(), twice.y.cpu()));
  EXPECT_TRUE(same_bits(once.d_x.cpu(), twice.d_x.cpu()));
  EXPECT_TRUE(same_bits(once.d_weight.cpu(), twice.d_weight.cpu()));
  const auto exact =
      answer_to(x.to(at::kDouble), weight.to(at::kDouble), d.to(at::kDouble));
  EXPECT_LT(relative_to(once.y, exact.y), 0x1p-8);
  EXPECT_LT(relative_to(once.d_x, exact.d_x), 0x1p-8);
  EXPECT_LT(relative_to(once.d_weight, exact.d_weight), 1e-4);
}

TEST(ShortConvolutionCuda, PositionByPositionIsTheWhole) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const auto x = normal({5, 3, 40, 24}, 1).to(type).cuda();
    const auto weight = normal({3, 3, 24}, 2).cuda();
    const auto whole = short_convolution(x, weight);
    const auto recent = at::zeros({5, 3, 3, 24}, x.options());
    for (int64_t i = 0; i < 40; ++i) {
      const auto next = next_convolution(x.narrow(2, i, 1), weight, recent);
      EXPECT_TRUE(same_bits(next.cpu(), whole.narrow(2, i, 1).cpu())) << i;
    }
  }
}

}  // namespace
}  // namespace reformer
