// Adafactor's kernels beside plain arithmetic in float64, and beside the CPU's.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reformer/optim/optimizer.h"
#include "tests/optim/plain_optimizers.h"
#include "tests/optim/some_parameters.h"

namespace reformer {
namespace {

// Around tiles of 32 rows by 256 columns: one less, one more, several; tall,
// wide, stacks, vectors.
const std::vector<Sizes> kSizes = {
    {},        {1},        {7},       {255},     {257},        {70000},
    {5, 3},    {1, 9},     {6, 1},    {31, 255}, {33, 257},    {4097, 3},
    {3, 4097}, {70, 1000}, {2, 3, 5}, {5, 1, 1}, {3, 65, 513}, {2, 3, 40, 7}};

std::vector<Parameter> parameters_on(at::Device device) {
  std::vector<Parameter> parameters;
  for (const Sizes& sizes : kSizes) {
    const auto index = static_cast<int64_t>(parameters.size());
    parameters.push_back({std::string("p").append(std::to_string(index)),
                          numbers(sizes, index, at::kFloat).to(device),
                          at::Tensor()});
  }
  return parameters;
}

void set_gradients_on_gpu(std::vector<Parameter>& parameters, int64_t step,
                          double scale = 1) {
  int64_t index = 0;
  for (auto& parameter : parameters) {
    parameter.gradient() =
        numbers(parameter.value.sizes().vec(), 17 * step + index++, at::kFloat)
            .mul(scale)
            .cuda();
  }
}

std::unique_ptr<Optimizer> adafactor(const std::vector<Parameter>& parameters) {
  TrainConfig config;
  config.optimizer = "adafactor";
  return make_optimizer(config, parameters);
}

TEST(CudaAdafactor, EqualsPlainArithmetic) {
  auto parameters = parameters_on(at::kCUDA);
  std::vector<std::unique_ptr<PlainOptimizer>> plain;
  std::vector<std::vector<double>> expected;
  for (const auto& parameter : parameters) {
    plain.push_back(plain_adafactor(parameter.value.sizes().vec()));
    expected.push_back(values_of(parameter.value.cpu()));
  }
  const auto optimizer = adafactor(parameters);
  for (int64_t step = 1; step <= 6; ++step) {
    set_gradients_on_gpu(parameters, step);
    const double rate = 0.1 / static_cast<double>(step);
    optimizer->step(parameters, rate);
    for (size_t i = 0; i < parameters.size(); ++i) {
      plain[i]->step(expected[i], values_of(parameters[i].gradient().cpu()),
                     rate);
      const auto found = values_of(parameters[i].value.cpu());
      double error = 0;
      for (size_t e = 0; e < found.size(); ++e) {
        error = std::max(error, std::abs(found[e] - expected[i][e]));
      }
      EXPECT_LE(error, 1e-5) << parameters[i].value.sizes() << " step " << step;
    }
  }
}

TEST(CudaAdafactor, KeepsTheCpusState) {
  auto here = parameters_on(at::kCPU);
  auto there = parameters_on(at::kCUDA);
  const auto on_cpu = adafactor(here);
  const auto on_gpu = adafactor(there);
  for (int64_t step = 1; step <= 4; ++step) {
    set_gradients_on_gpu(there, step);
    for (size_t i = 0; i < here.size(); ++i) {
      here[i].gradient() = there[i].gradient().cpu();
    }
    on_cpu->step(here, 0.01);
    on_gpu->step(there, 0.01);
  }
  const auto expected = on_cpu->state();
  const auto found = on_gpu->state();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].name, expected[i].name);
    const auto exact = expected[i].value.to(at::kDouble);
    const auto relative =
        (found[i].value.cpu().to(at::kDouble) - exact).abs() / exact.abs();
    EXPECT_LE(relative.max().item<double>(), 1e-5) << found[i].name;
  }
}

TEST(CudaAdafactor, LeavesParametersWithoutAGradientAlone) {
  auto parameters = parameters_on(at::kCUDA);
  const auto before = parameters[9].value.clone();
  const auto optimizer = adafactor(parameters);
  set_gradients_on_gpu(parameters, 1);
  parameters[9].gradient().reset();
  const auto other = parameters[10].value.clone();
  optimizer->step(parameters, 0.1);
  EXPECT_TRUE(at::equal(parameters[9].value, before));
  EXPECT_FALSE(at::equal(parameters[10].value, other));
}

// Rows without a gradient have moments of 1e-30 beside others of 1e30: their
// quotient is below what float32 holds.
TEST(CudaAdafactor, StaysFiniteWhereGradientsAreZeroOrHuge) {
  auto parameters = parameters_on(at::kCUDA);
  const auto optimizer = adafactor(parameters);
  for (const double scale : {0.0, 1e15, 0.0, 1e-25, 1.0}) {
    set_gradients_on_gpu(parameters, 1, scale);
    for (auto& parameter : parameters) {
      if (parameter.value.dim() < 2) continue;
      parameter.gradient().select(-2, 0).zero_();
      parameter.gradient().select(-1, 0).zero_();
    }
    optimizer->step(parameters, 0.1);
    for (const auto& parameter : parameters) {
      EXPECT_TRUE(parameter.value.isfinite().all().item<bool>())
          << parameter.value.sizes() << ", gradients times " << scale;
    }
  }
}

TEST(CudaAdafactor, GivesTheSameBitsEveryTime) {
  auto once = parameters_on(at::kCUDA);
  auto again = parameters_on(at::kCUDA);
  const auto first = adafactor(once);
  const auto second = adafactor(again);
  for (int64_t step = 1; step <= 3; ++step) {
    set_gradients_on_gpu(once, step);
    set_gradients_on_gpu(again, step);
    first->step(once, 0.1);
    second->step(again, 0.1);
  }
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_TRUE(at::equal(once[i].value, again[i].value)) << once[i].name;
  }
}

}  // namespace
}  // namespace reformer
