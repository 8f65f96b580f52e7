#include "reformer/ops/matmul.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include "reformer/ops/linear.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

at::Tensor drawn(at::IntArrayRef sizes, uint64_t seed) {
  return normal(sizes, seed).to(at::kDouble);
}

void expect_near(const at::Tensor& found, const at::Tensor& expected,
                 double tolerance = 1e-12) {
  EXPECT_LE((found - expected).abs().max().item<double>(), tolerance);
}

TEST(MatrixSums, AddProductsToWhatThereIs) {
  const auto a = drawn({7, 33}, 1);
  const auto b = drawn({33, 5}, 2);
  for (const double scale : {1.0, -1.0, 0.5}) {
    const auto before = drawn({7, 5}, 3);
    const auto sum = before.clone();
    add_matmul(sum, a, b, scale);
    expect_near(sum, before + scale * at::matmul(a, b));
    const auto of_transposed = before.t().clone();
    add_matmul(of_transposed, b.t(), a.t(), scale);
    expect_near(of_transposed.t(), sum);
  }
  expect_near(matmul(a, b, at::kDouble), at::matmul(a, b));
}

TEST(MatrixSums, MayBeOfAWiderType) {
  const auto a = normal({7, 33}, 1);
  const auto b = normal({33, 5}, 2);
  const auto before = drawn({7, 5}, 3);
  const auto sum = before.clone();
  add_matmul(sum, a, b);
  const auto exact = at::matmul(a.to(at::kDouble), b.to(at::kDouble));
  expect_near(sum, before + exact, 1e-4);
  EXPECT_EQ(matmul(a, b, at::kDouble).scalar_type(), at::kDouble);
  expect_near(matmul(a, b, at::kDouble), exact, 1e-4);
}

TEST(MatrixSums, OfRowsAndMatricesAreAddedAndTakenBack) {
  const auto x = drawn({2, 7, 33}, 1);
  for (const auto& bias : {at::Tensor(), drawn({5}, 3)}) {
    const LinearWeights matrix{drawn({5, 33}, 2), bias};
    auto product = at::matmul(x, matrix.weight.t());
    if (bias.defined()) product = product + bias;
    const auto before = drawn({2, 9, 5}, 4);
    for (const double scale : {1.0, -1.0}) {
      const auto y = before.narrow(1, 0, 7).clone();
      add_linear_exactly(x, matrix, y, scale);
      expect_near(y, before.narrow(1, 0, 7) + scale * product);
      const auto larger = before.clone();
      add_linear_exactly(x, matrix, larger.narrow(1, 1, 7), scale);
      expect_near(larger.narrow(1, 1, 7),
                  before.narrow(1, 1, 7) + scale * product);
      expect_near(larger.narrow(1, 0, 1), before.narrow(1, 0, 1));
    }
  }
}

}  // namespace
}  // namespace reformer
