#include "reformer/ops/packed_matrices.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "reformer/ops/linear.h"

namespace reformer {
namespace {

double difference(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return (a - b).abs().max().item<double>();
}

TEST(PackedMatrices, AreTheMatrices) {
  const at::NoGradGuard no_grad;
  PackedMatrices matrices;
  const PackedMatrices::Use use(matrices);
  for (const int64_t rows : {1, 7, 128, 333}) {
    const auto x = at::randn({rows, 3, 40});
    const auto weight = at::randn({52, 40});
    const auto bias = at::randn({52});
    for (int twice = 0; twice < 2; ++twice) {
      EXPECT_LT(difference(linear(x, {weight, {}}), at::linear(x, weight)),
                1e-4);
      EXPECT_LT(difference(linear(x, {weight, bias}, Activation::kRelu),
                           at::relu(at::linear(x, weight, bias))),
                1e-4);
      EXPECT_LT(
          difference(linear(x, {weight, bias}, Activation::kGelu),
                     activated(at::linear(x, weight, bias), Activation::kGelu)),
          1e-4);
    }
    auto sum = at::zeros_like(at::linear(x, weight));
    add_linear(x, {weight, bias}, sum);
    add_linear(x, {weight, {}}, sum);
    EXPECT_LT(difference(sum, 2 * at::linear(x, weight) + bias), 1e-4);
  }
}

// As the output projection, which is the first rows of an embedding.
TEST(PackedMatrices, PartsAreNotTakenForTheWhole) {
  const at::NoGradGuard no_grad;
  PackedMatrices matrices;
  const PackedMatrices::Use use(matrices);
  const auto x = at::randn({9, 40});
  const auto table = at::randn({52, 40});
  for (const int64_t n : {50, 52, 50, 3}) {
    const auto part = table.narrow(0, 0, n);
    EXPECT_LT(difference(linear(x, {part, {}}), at::linear(x, part)), 1e-4);
  }
}

TEST(PackedMatrices, GradientsAndOtherTypesAreLeftToTheLibrary) {
  PackedMatrices matrices;
  const PackedMatrices::Use use(matrices);
  const auto weight = at::randn({52, 40}).requires_grad_(true);
  const auto x = at::randn({9, 40});
  const auto y = linear(x, {weight, {}});
  y.sum().backward();
  EXPECT_TRUE(weight.grad().defined());
  const auto exact = linear(x.to(at::kDouble), {weight.to(at::kDouble), {}});
  EXPECT_EQ(exact.scalar_type(), at::kDouble);
}

TEST(PackedMatrices, AreInUseWhileAUseExists) {
  PackedMatrices one;
  PackedMatrices two;
  EXPECT_EQ(PackedMatrices::in_use(), nullptr);
  {
    const PackedMatrices::Use first(one);
    {
      const PackedMatrices::Use second(two);
      EXPECT_EQ(PackedMatrices::in_use(), &two);
    }
    EXPECT_EQ(PackedMatrices::in_use(), &one);
  }
  EXPECT_EQ(PackedMatrices::in_use(), nullptr);
}

}  // namespace
}  // namespace reformer
