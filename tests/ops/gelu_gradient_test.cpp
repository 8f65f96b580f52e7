#include "reformer/ops/gelu_gradient.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/cases.h"

namespace reformer {
namespace {

TEST(GeluGradient, IsAutogradsAndItsSumsAreTheBiass) {
  const auto inner = normal({37, 33}, 1).to(at::kDouble) * 3;
  const auto bias = normal({33}, 2).to(at::kDouble).requires_grad_();
  const auto x = inner.clone().requires_grad_();
  const auto d = normal({37, 33}, 3).to(at::kDouble);
  torch::autograd::backward({at::gelu(x + bias, "tanh")}, {d});

  const auto found = d.clone();
  const auto before = normal({33}, 4).to(at::kDouble);
  const auto sums = before.clone();
  gelu_gradient(found, inner + bias.detach(), sums);
  const auto error = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>();
  };
  EXPECT_LE(error(found, x.grad()), 1e-12);
  EXPECT_LE(error(sums, before + bias.grad()), 1e-12);
}

}  // namespace
}  // namespace reformer
