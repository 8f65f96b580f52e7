#include "reformer/ops/layer_norm.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace reformer {
namespace {

struct Norm {
  at::Tensor y;
  std::vector<at::Tensor> gradients;  // of x, weight, bias
};

template <class Function>
Norm run(std::vector<at::Tensor> inputs, const at::Tensor& d_y,
         const Function& function) {
  for (auto& input : inputs) input = input.detach().requires_grad_();
  const auto y = function(inputs);
  torch::autograd::backward({y}, {d_y.to(y.options())});
  Norm norm{y.detach(), {}};
  for (const auto& input : inputs) norm.gradients.push_back(input.grad());
  return norm;
}

double error_of(const at::Tensor& x, const at::Tensor& exact) {
  return (x.to(exact.options()) - exact).abs().max().item<double>();
}

// Of a seed, or the numbers would depend on which tests ran before.
at::Tensor drawn(at::IntArrayRef sizes, uint64_t seed) {
  const auto random = at::detail::createCPUGenerator(seed);
  return at::randn(sizes, random, at::TensorOptions()).cuda();
}

// At most twice the error of LibTorch's kernel and conversion, against float64.
TEST(CudaLayerNorm, IsAsExactAsLibTorchs) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t width : {4, 40, 128, 132, 256, 500, 1024, 2048}) {
      for (const int64_t rows : {1, 7, 3001}) {
        const std::vector<at::Tensor> inputs = {drawn({rows, width}, 1) * 3 + 1,
                                                drawn({width}, 2),
                                                drawn({width}, 3)};
        const auto d_y = drawn({rows, width}, 4).to(type);
        const auto library = [&](const std::vector<at::Tensor>& x) {
          return at::layer_norm(x[0], {width}, x[1], x[2]);
        };
        const auto ours = run(inputs, d_y, [&](const auto& x) {
          return layer_norm(x[0], {x[1], x[2]}, type);
        });
        const auto plain = run(
            inputs, d_y, [&](const auto& x) { return library(x).to(type); });
        std::vector<at::Tensor> wide;
        for (const auto& input : inputs) wide.push_back(input.to(at::kDouble));
        const auto exact = run(wide, d_y, library);
        ASSERT_EQ(ours.y.scalar_type(), type);
        const auto check = [&](const at::Tensor& x, const at::Tensor& p,
                               const at::Tensor& e, const char* what) {
          const double epsilon =
              x.scalar_type() == type && type != at::kFloat ? 0x1p-8 : 0x1p-23;
          EXPECT_LE(
              error_of(x, e),
              2 * error_of(p, e) + 4 * epsilon * e.abs().max().item<double>())
              << what << ", width " << width << ", rows " << rows;
        };
        check(ours.y, plain.y, exact.y, "y");
        check(ours.gradients[0], plain.gradients[0], exact.gradients[0], "d_x");
        check(ours.gradients[1], plain.gradients[1], exact.gradients[1], "d_w");
        check(ours.gradients[2], plain.gradients[2], exact.gradients[2], "d_b");
      }
    }
  }
}

// Which may round once less than adding afterwards.
TEST(CudaLayerNorm, AddsItsGradientsToWhatThereIs) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t width : {4, 132, 1024, 2048}) {
      for (const int64_t rows : {1, 7, 3001}) {
        const std::vector<at::Tensor> inputs = {drawn({rows, width}, 1) * 3 + 1,
                                                drawn({width}, 2),
                                                drawn({width}, 3)};
        const auto d_y = drawn({rows, width}, 4).to(type);
        const auto alone = run(inputs, d_y, [&](const auto& x) {
          return layer_norm(x[0], {x[1], x[2]}, type);
        });
        const NormWeights norm{inputs[1], inputs[2]};
        const auto normed = layer_norm_forward(inputs[0], norm, type);
        EXPECT_TRUE(at::equal(normed.y, alone.y));
        // Every second row of more: neither dense nor written between.
        const auto before = drawn({2 * rows, width}, 5);
        const auto dense = before.narrow(0, 0, rows).clone();
        const auto spread = before.clone();
        for (const auto& sum : {dense, spread.slice(0, 0, 2 * rows, 2)}) {
          const auto d_w = drawn({width}, 6);
          const auto d_b = drawn({width}, 7);
          const std::vector<at::Tensor> expected = {sum + alone.gradients[0],
                                                    d_w + alone.gradients[1],
                                                    d_b + alone.gradients[2]};
          add_layer_norm_gradients(normed, norm, d_y, {sum, d_w, d_b});
          size_t i = 0;
          for (const auto& found : {sum, d_w, d_b}) {
            const double largest = expected[i].abs().max().item<double>();
            EXPECT_LE(error_of(found, expected[i]), 4 * 0x1p-23 * largest)
                << i << ", width " << width << ", rows " << rows;
            ++i;
          }
        }
        EXPECT_TRUE(at::equal(spread.slice(0, 1, 2 * rows, 2),
                              before.slice(0, 1, 2 * rows, 2)));
      }
    }
  }
}

TEST(CudaLayerNorm, GivesTheSameBitsTwice) {
  const auto gpu = at::TensorOptions().device(at::kCUDA);
  const std::vector<at::Tensor> inputs = {at::randn({5000, 256}, gpu),
                                          at::randn({256}, gpu),
                                          at::randn({256}, gpu)};
  const auto d_y = at::randn({5000, 256}, gpu).to(at::kBFloat16);
  const auto norm = [](const auto& x) {
    return layer_norm(x[0], {x[1], x[2]}, at::kBFloat16);
  };
  const auto once = run(inputs, d_y, norm);
  const auto again = run(inputs, d_y, norm);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::equal(once.gradients[i], again.gradients[i]));
  }
}

}  // namespace
}  // namespace reformer
