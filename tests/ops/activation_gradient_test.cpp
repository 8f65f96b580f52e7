#include "reformer/ops/activation_gradient.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/cases.h"

namespace reformer {
namespace {

class ActivationGradient : public testing::TestWithParam<Activation> {};

TEST_P(ActivationGradient, IsAutogradsAndItsSumsAreTheBiass) {
  const auto inner = normal({37, 33}, 1).to(at::kDouble) * 3;
  const auto bias = normal({33}, 2).to(at::kDouble).requires_grad_();
  const auto x = inner.clone().requires_grad_();
  const auto d = normal({37, 33}, 3).to(at::kDouble);
  torch::autograd::backward({activated(x + bias, GetParam())}, {d});

  const auto found = d.clone();
  const auto before = normal({33}, 4).to(at::kDouble);
  const auto sums = before.clone();
  const auto given = inner + bias.detach();
  activation_gradient(
      found, keeps_result(GetParam()) ? activated(given, GetParam()) : given,
      sums, GetParam());
  const auto error = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>();
  };
  EXPECT_LE(error(found, x.grad()), 1e-12);
  EXPECT_LE(error(sums, before + bias.grad()), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(All, ActivationGradient,
                         testing::Values(Activation::kNone, Activation::kGelu,
                                         Activation::kRelu,
                                         Activation::kGeluErf,
                                         Activation::kReluSquared));

TEST(Activation, SquaresWhatIsPositive) {
  auto x = normal({5, 7}, 1);
  const auto exact = x.clamp_min(0).square();
  EXPECT_TRUE(at::equal(activated(x, Activation::kReluSquared), exact));
  activate_in_place(x, Activation::kReluSquared);
  EXPECT_TRUE(at::equal(x, exact));
}

}  // namespace
}  // namespace reformer
