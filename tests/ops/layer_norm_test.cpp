#include "reformer/ops/layer_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/layer_norm.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/cases.h"

namespace reformer {
namespace {

struct Problem {
  at::Tensor x;
  NormWeights norm;
  at::Tensor d_y;
};

Problem some_problem() {
  const auto drawn = [](at::IntArrayRef sizes, uint64_t seed) {
    return normal(sizes, seed).to(at::kDouble);
  };
  return {drawn({3, 7, 33}, 1) * 3 + 1,
          {drawn({33}, 2), drawn({33}, 3)},
          drawn({3, 7, 33}, 4)};
}

// By autograd, of LibTorch's.
LayerNormGradients plain_gradients(const Problem& problem) {
  const auto leaf = [](const at::Tensor& x) {
    return x.detach().clone().requires_grad_();
  };
  const auto x = leaf(problem.x);
  const auto weight = leaf(problem.norm.weight);
  const auto bias = leaf(problem.norm.bias);
  torch::autograd::backward({at::layer_norm(x, {x.size(-1)}, weight, bias)},
                            {problem.d_y});
  return {x.grad(), weight.grad(), bias.grad()};
}

void expect_near(const at::Tensor& found, const at::Tensor& expected) {
  EXPECT_LE((found - expected).abs().max().item<double>(), 1e-12);
}

TEST(LayerNorm, InTwoHalvesIsTheWhole) {
  const auto [x, norm, d_y] = some_problem();
  const auto normed = layer_norm_forward(x, norm, at::kDouble);
  EXPECT_TRUE(at::equal(normed.y, layer_norm(x, norm, at::kDouble)));
}

TEST(LayerNorm, AddsItsGradientsToWhatThereIs) {
  const auto problem = some_problem();
  const auto expected = plain_gradients(problem);
  const auto normed = layer_norm_forward(problem.x, problem.norm, at::kDouble);
  const LayerNormGradients sums{problem.d_y.clone(), problem.norm.bias.clone(),
                                problem.norm.weight.clone()};
  add_layer_norm_gradients(normed, problem.norm, problem.d_y, sums);
  expect_near(sums.x, problem.d_y + expected.x);
  expect_near(sums.weight, problem.norm.bias + expected.weight);
  expect_near(sums.bias, problem.norm.weight + expected.bias);
}

// As the parts of several sequences are.
TEST(LayerNorm, TakesAndAddsToPartsOfTensors) {
  const auto problem = some_problem();
  const auto expected = plain_gradients(problem);
  const auto d_x = problem.d_y.clone();
  const LayerNormGradients sums{
      {}, problem.norm.bias.clone(), problem.norm.weight.clone()};
  for (const auto& [at, n] : {std::pair{0, 3}, {3, 4}}) {
    const auto normed = layer_norm_forward(problem.x.narrow(1, at, n),
                                           problem.norm, at::kDouble);
    add_layer_norm_gradients(normed, problem.norm, problem.d_y.narrow(1, at, n),
                             {d_x.narrow(1, at, n), sums.weight, sums.bias});
  }
  expect_near(d_x, problem.d_y + expected.x);
  expect_near(sums.weight, problem.norm.bias + expected.weight);
  expect_near(sums.bias, problem.norm.weight + expected.bias);
}

}  // namespace
}  // namespace reformer
