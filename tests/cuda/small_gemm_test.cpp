#include "reformer/ops/linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/cases.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);

double epsilon_of(at::ScalarType type) {
  return type == at::kBFloat16 ? 0x1p-8 : 0x1p-23;
}

double error_of(const at::Tensor& x, const at::Tensor& exact) {
  return (x.to(at::kDouble) - exact).abs().max().item<double>();
}

struct Numbers {
  at::Tensor x;
  NormWeights norm;
  std::vector<LinearWeights> matrices;
};

// Matrices are numbers of `compute`; everything on the GPU.
Numbers some_numbers(int64_t rows, int64_t width,
                     const std::vector<int64_t>& outputs,
                     at::ScalarType compute) {
  uint64_t seed = 1;
  const auto drawn = [&](at::IntArrayRef sizes) {
    return normal(sizes, seed++).to(kGpu);
  };
  Numbers numbers{drawn({rows, 1, width}).mul(3).add(1),
                  {drawn({width}), drawn({width})},
                  {}};
  for (const int64_t n : outputs) {
    const double size = 1 / std::sqrt(double(width));
    numbers.matrices.push_back(
        {drawn({n, width}).mul(size).to(compute), drawn({n})});
  }
  numbers.matrices.back().bias.reset();
  return numbers;
}

at::Tensor exact_linear(const at::Tensor& x, const LinearWeights& matrix) {
  return at::linear(
      x, matrix.weight.to(at::kDouble),
      matrix.bias.defined() ? matrix.bias.to(at::kDouble) : matrix.bias);
}

at::Tensor exact_activation(const at::Tensor& x, Activation activation) {
  if (activation == Activation::kNone) return x;
  if (activation == Activation::kReluSquared) return at::relu(x).square();
  return activation == Activation::kGelu ? at::gelu(x, "tanh") : at::relu(x);
}

// With gradients the library's operations run: the plain version.
TEST(CudaSmallGemm, NormedOnesAreAsExactAsTheLibrarys) {
  for (const auto compute : {at::kFloat, at::kBFloat16}) {
    for (const int64_t rows : {1, 2, 3, 5, 8, 9}) {
      for (const int64_t width : {8, 40, 520, 1024, 2048}) {
        for (const auto activation :
             {Activation::kNone, Activation::kGelu, Activation::kRelu,
              Activation::kReluSquared}) {
          const auto n = some_numbers(rows, width,
                                      {7, 130, rows == 1 ? 4400 : 33}, compute);
          const auto run = [&](bool fused, at::ScalarType result) {
            const at::AutoGradMode record(!fused);
            return norm_linear(n.x, n.norm, n.matrices, {compute, result},
                               activation);
          };
          const auto normed = at::layer_norm(n.x.to(at::kDouble), {width},
                                             n.norm.weight.to(at::kDouble),
                                             n.norm.bias.to(at::kDouble), 1e-5);
          const auto fast = run(true, compute);
          const auto wide = run(true, at::kFloat);
          const auto plain = run(false, compute);
          for (size_t i = 0; i < fast.size(); ++i) {
            const auto exact = exact_activation(
                exact_linear(normed, n.matrices[i]), activation);
            const double bar =
                2 * error_of(plain[i], exact) +
                4 * epsilon_of(compute) * exact.abs().max().item<double>();
            EXPECT_EQ(fast[i].sizes(), plain[i].sizes());
            EXPECT_EQ(fast[i].scalar_type(), compute);
            EXPECT_LE(error_of(fast[i], exact), bar)
                << rows << " x " << width << ", matrix " << i;
            EXPECT_LE(error_of(wide[i], exact), bar)
                << rows << " x " << width << ", matrix " << i << ", float32";
          }
        }
      }
    }
  }
}

// Logits: of one token and of thousands, in training and without gradients.
TEST(CudaSmallGemm, WideResultsAreNotRoundedWhateverTheNumberOfRows) {
  for (const int64_t rows : {1, 8, 9, 300}) {
    for (const bool gradients : {false, true}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << gradients);
      const at::AutoGradMode record(gradients);
      const auto n = some_numbers(rows, 512, {256, 1}, at::kBFloat16);
      const auto found =
          norm_linear(n.x, n.norm, n.matrices, {at::kBFloat16, at::kFloat})[0];
      const auto exact =
          exact_linear(layer_norm(n.x, n.norm, at::kBFloat16).to(at::kDouble),
                       n.matrices[0]);
      EXPECT_LE(error_of(found, exact),
                1e-5 * exact.abs().max().item<double>());
    }
  }
}

TEST(CudaSmallGemm, AddedOnesAreAsExactAsTheLibrarys) {
  const at::NoGradGuard no_grad;
  for (const auto compute : {at::kFloat, at::kBFloat16}) {
    for (const int64_t rows : {1, 2, 4, 7, 9}) {
      for (const int64_t width : {8, 40, 1024, 4096, 4104}) {
        auto n = some_numbers(rows, width, {130, 1}, compute);
        const auto x = n.x.to(compute);
        for (const auto& matrix : n.matrices) {
          const auto y = normal({rows, 1, matrix.weight.size(0)}, 77).to(kGpu);
          const auto exact =
              y.to(at::kDouble) + exact_linear(x.to(at::kDouble), matrix);
          const auto plain =
              y + at::linear(x, matrix.weight,
                             matrix.bias.defined() ? matrix.bias.to(compute)
                                                   : matrix.bias);
          add_linear(x, matrix, y);
          EXPECT_LE(
              error_of(y, exact),
              2 * error_of(plain, exact) +
                  4 * epsilon_of(compute) * exact.abs().max().item<double>())
              << rows << " x " << width;
        }
      }
    }
  }
}

TEST(CudaSmallGemm, ConvertMatricesOfAnotherType) {
  const at::NoGradGuard no_grad;
  auto n = some_numbers(2, 64, {9}, at::kBFloat16);
  const LinearTypes types{at::kBFloat16, at::kBFloat16};
  const auto expected = norm_linear(n.x, n.norm, n.matrices, types)[0];
  n.matrices[0].weight = n.matrices[0].weight.to(at::kFloat);
  EXPECT_TRUE(norm_linear(n.x, n.norm, n.matrices, types)[0].equal(expected));
}

}  // namespace
}  // namespace reformer
