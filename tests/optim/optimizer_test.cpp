#include "reformer/optim/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "reformer/base/errors.h"
#include "reformer/base/parallel.h"
#include "reformer/optim/muon.h"
#include "tests/optim/plain_optimizers.h"
#include "tests/optim/some_parameters.h"

namespace reformer {
namespace {

TrainConfig config_of(const std::string& optimizer) {
  TrainConfig config;
  config.optimizer = optimizer;
  config.weight_decay = 0.1;
  config.beta2 = 0.98;
  return config;
}

using Numbers = std::vector<double>;

const std::vector<std::string> kOptimizers = {"adafactor", "adam", "adamw",
                                              "muon"};

double largest_error(const at::Tensor& got, const Numbers& expected) {
  const Numbers values = values_of(got);
  double error = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error = std::max(error, std::abs(values[i] - expected[i]));
  }
  return error;
}

// Runs the optimizer beside plain arithmetic on each parameter.
void expect_equals_plain(const std::string& name,
                         std::vector<Parameter> parameters, double tolerance,
                         const PlainFactory& plain_of) {
  std::vector<std::unique_ptr<PlainOptimizer>> plain;
  std::vector<Numbers> expected;
  for (const auto& parameter : parameters) {
    plain.push_back(plain_of(parameter.value.sizes().vec()));
    expected.push_back(values_of(parameter.value));
  }
  const auto optimizer = make_optimizer(config_of(name), parameters);
  for (int64_t step = 1; step <= 6; ++step) {
    set_gradients(parameters, step);
    const double rate = 0.1 / static_cast<double>(step);
    optimizer->step(parameters, rate);
    for (size_t i = 0; i < parameters.size(); ++i) {
      plain[i]->step(expected[i], values_of(parameters[i].gradient()), rate);
      EXPECT_LE(largest_error(parameters[i].value, expected[i]), tolerance)
          << parameters[i].value.sizes() << " step " << step;
    }
  }
}

void expect_equals_plain(const std::string& name, at::ScalarType type,
                         double tolerance, const PlainFactory& plain_of) {
  expect_equals_plain(name, some_parameters(type), tolerance, plain_of);
}

TEST(Adafactor, EqualsPlainArithmetic) {
  expect_equals_plain("adafactor", at::kDouble, 1e-12, plain_adafactor);
  expect_equals_plain("adafactor", at::kFloat, 1e-5, plain_adafactor);
}

TEST(Adam, EqualsPlainArithmetic) {
  const auto plain = [](const Sizes&) { return plain_adam(0.9, 0.98, 0); };
  expect_equals_plain("adam", at::kDouble, 1e-12, plain);
  expect_equals_plain("adam", at::kFloat, 1e-5, plain);
}

TEST(AdamW, EqualsPlainArithmeticAndDecaysMatricesOnly) {
  const auto plain = [](const Sizes& sizes) {
    return plain_adam(0.9, 0.98, sizes.size() >= 2 ? 0.1 : 0);
  };
  expect_equals_plain("adamw", at::kDouble, 1e-12, plain);
  expect_equals_plain("adamw", at::kFloat, 1e-5, plain);
}

// Wide, tall and square ones, two of a shape in one block and in two.
std::vector<Parameter> some_matrices(at::ScalarType type) {
  std::vector<Parameter> parameters;
  const auto add = [&](const std::string& name, const Sizes& sizes) {
    const auto seed = static_cast<int64_t>(parameters.size());
    parameters.push_back({name, numbers(sizes, seed, type), {}});
  };
  add("blocks.0.a", {4, 6});
  add("blocks.0.b", {6, 4});
  add("blocks.1.a", {4, 6});
  add("blocks.1.c", {5, 5});
  add("blocks.10.d", {1, 7});
  return parameters;
}

TEST(Muon, EqualsPlainArithmetic) {
  const auto plain = [](const Sizes& sizes) {
    return plain_muon(sizes, 0.95, 0.1);
  };
  expect_equals_plain("muon", some_matrices(at::kDouble), 1e-12, plain);
  expect_equals_plain("muon", some_matrices(at::kFloat), 2e-5, plain);
}

TEST(Muon, IsAdamWOutsideTheBlocksAndOfVectors) {
  auto parameters = some_parameters(at::kDouble);
  parameters[0].name = "blocks.0.bias";
  const auto plain = [](const Sizes& sizes) {
    return plain_adam(0.9, 0.98, sizes.size() >= 2 ? 0.1 : 0);
  };
  expect_equals_plain("muon", parameters, 1e-12, plain);
}

// The step's matrix has the gradient's singular vectors, and values as its
// header says, down to 0.3% of the norm.
TEST(Muon, BringsSingularValuesTogether) {
  const auto [u, some, vt] =
      at::linalg_svd(numbers({3, 20, 50}, 1), /*full_matrices=*/false);
  auto s = at::empty_like(some);
  for (int64_t i = 0; i < s.size(1); ++i) {
    s.select(1, i).fill_(std::pow(0.005, double(i) / double(s.size(1) - 1)));
  }
  const double least =
      (s.select(1, s.size(1) - 1) / s.square().sum(1).sqrt())[0].item<double>();
  const auto x = (u * s.unsqueeze(1)).matmul(vt);
  const auto turned = u.mT().matmul(orthogonalized(x)).matmul(vt.mT());
  const auto diagonal = turned.diagonal(0, 1, 2);
  EXPECT_NEAR(least, 0.003, 0.0005);
  EXPECT_LE((turned - diagonal.diag_embed()).abs().max().item<double>(), 1e-6);
  EXPECT_GT(diagonal.min().item<double>(), 0.68);
  EXPECT_LT(diagonal.max().item<double>(), 1.21);
}

TEST(Muon, OnlyDecaysWhereGradientsAreZero) {
  std::vector<Parameter> parameters = some_matrices(at::kDouble);
  const auto before = some_matrices(at::kDouble);
  for (auto& parameter : parameters) {
    parameter.gradient() = at::zeros_like(parameter.value);
  }
  make_optimizer(config_of("muon"), parameters)->step(parameters, 0.01);
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(parameters[i].value, before[i].value * 0.999));
  }
}

// Blocks whose parameters come and go are updated one at a time: their state
// must be found whatever else has a gradient. (That LibTorch's products of a
// block's matrices do not depend on other blocks is tests/cuda's.)
TEST(Muon, OfOneBlockAtATimeIsTheSameBitForBit) {
  auto together = some_matrices(at::kFloat);
  auto apart = some_matrices(at::kFloat);
  const auto one = make_optimizer(config_of("muon"), together);
  const auto other = make_optimizer(config_of("muon"), apart);
  for (int64_t step = 1; step <= 3; ++step) {
    set_gradients(together, step);
    one->step(together, 0.01);
    other->begin_step();
    for (const int64_t block : {10, 1, 0}) {
      set_gradients(apart, step);
      for (auto& parameter : apart) {
        if (block_of(parameter.name) != block) parameter.gradient().reset();
      }
      other->update(apart, 0.01);
    }
  }
  for (size_t i = 0; i < together.size(); ++i) {
    EXPECT_TRUE(at::equal(together[i].value, apart[i].value));
  }
}

// beta2 is 0 at the first step, so y is g / |g| where every |g| is the same.
TEST(Adafactor, MovesByTheRateTimesTheParametersSizeAtTheFirstStep) {
  for (const Sizes& sizes : {Sizes{4}, Sizes{4, 3}, Sizes{2, 4, 3}}) {
    std::vector<Parameter> parameters = {{"w",
                                          at::full(sizes, 2.0, at::kDouble),
                                          at::full(sizes, -5.0, at::kDouble)}};
    make_optimizer(config_of("adafactor"), parameters)->step(parameters, 0.01);
    EXPECT_LE(largest_error(parameters[0].value,
                            Numbers(parameters[0].value.numel(), 2.02)),
              1e-14);
  }
}

TEST(Adafactor, MovesAParameterOfZeros) {
  std::vector<Parameter> parameters = {
      {"w", at::zeros({3, 3}), at::ones({3, 3})}};
  make_optimizer(config_of("adafactor"), parameters)->step(parameters, 1);
  EXPECT_LE(largest_error(parameters[0].value, Numbers(9, -1e-3)), 1e-9);
}

TEST(Adafactor, KeepsRowsAndColumnsOnly) {
  std::vector<Parameter> parameters = {
      {"w", at::zeros({2, 30, 50}), at::Tensor()}};
  const auto state =
      make_optimizer(config_of("adafactor"), parameters)->state();
  EXPECT_EQ(state[0].value.sizes(), (Sizes{2, 30}));
  EXPECT_EQ(state[1].value.sizes(), (Sizes{2, 50}));
}

// Rows without a gradient have moments of 1e-30: whatever is divided by those
// must stay finite in float32.
TEST(Adafactor, StaysFiniteWhereGradientsAreZeroOrHuge) {
  std::vector<Parameter> parameters = some_parameters(at::kFloat);
  const auto optimizer = make_optimizer(config_of("adafactor"), parameters);
  for (const double scale : {0.0, 1e15, 0.0, 1e-25, 1.0}) {
    set_gradients(parameters, 1);
    for (auto& parameter : parameters) {
      parameter.gradient().mul_(scale);
      if (parameter.gradient().dim() > 0) parameter.gradient()[0].zero_();
    }
    optimizer->step(parameters, 0.01);
    for (const auto& parameter : parameters) {
      for (const double w : values_of(parameter.value)) {
        ASSERT_TRUE(std::isfinite(w)) << parameter.value.sizes();
      }
    }
  }
}

TEST(Optimizer, LeavesAParameterWithoutGradientAlone) {
  for (const auto& name : kOptimizers) {
    auto parameters = some_parameters(at::kFloat);
    const auto before = some_parameters(at::kFloat);
    set_gradients(parameters, 1);
    parameters[1].gradient() = at::Tensor();
    make_optimizer(config_of(name), parameters)->step(parameters, 0.1);
    EXPECT_FALSE(at::equal(parameters[0].value, before[0].value));
    EXPECT_TRUE(at::equal(parameters[1].value, before[1].value));
  }
}

TEST(Optimizer, TakesAGradientOfAnyStrides) {
  for (const auto& name : kOptimizers) {
    std::vector<Parameter> a = {
        {"w", numbers({5, 3}, 1), numbers({3, 5}, 2).t()}};
    std::vector<Parameter> b = {
        {"w", numbers({5, 3}, 1), a[0].gradient().contiguous()}};
    make_optimizer(config_of(name), a)->step(a, 0.1);
    make_optimizer(config_of(name), b)->step(b, 0.1);
    EXPECT_TRUE(at::equal(a[0].value, b[0].value)) << name;
  }
}

void run_steps(Optimizer& optimizer, std::vector<Parameter>& parameters,
               int64_t first, int64_t last) {
  for (int64_t step = first; step <= last; ++step) {
    set_gradients(parameters, step);
    optimizer.step(parameters, 0.01);
  }
}

void expect_same_bits(const std::vector<Parameter>& a,
                      const std::vector<Parameter>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(at::equal(a[i].value, b[i].value)) << a[i].value.sizes();
  }
}

std::vector<NamedTensor> copy_of(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> copies;
  for (const auto& [name, value] : tensors) {
    copies.push_back({name, value.clone()});
  }
  return copies;
}

std::vector<Parameter> copy_of(const std::vector<Parameter>& parameters) {
  std::vector<Parameter> copies;
  for (const auto& parameter : parameters) {
    copies.push_back(
        {parameter.name, parameter.value.clone(), parameter.gradient()});
  }
  return copies;
}

std::vector<Parameter> parameters_and_matrices() {
  auto parameters = some_parameters(at::kFloat);
  for (auto& matrix : some_matrices(at::kFloat)) parameters.push_back(matrix);
  return parameters;
}

TEST(Optimizer, GoesOnFromItsStateBitForBit) {
  for (const auto& name : kOptimizers) {
    auto whole = parameters_and_matrices();
    const auto uninterrupted = make_optimizer(config_of(name), whole);
    run_steps(*uninterrupted, whole, 1, 3);
    auto resumed = copy_of(whole);
    const auto state = copy_of(uninterrupted->state());
    run_steps(*uninterrupted, whole, 4, 5);

    const auto optimizer = make_optimizer(config_of(name), resumed);
    optimizer->load_state(state);
    run_steps(*optimizer, resumed, 4, 5);
    expect_same_bits(whole, resumed);
  }
}

TEST(Optimizer, GivesTheSameBitsForAnyNumberOfThreads) {
  const int before = threads();
  // Muon's matrices are multiplied by LibTorch.
  for (const std::string name : {"adafactor", "adam", "adamw"}) {
    std::vector<std::vector<Parameter>> results;
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      auto parameters = some_parameters(at::kFloat);
      run_steps(*make_optimizer(config_of(name), parameters), parameters, 1, 2);
      results.push_back(parameters);
    }
    expect_same_bits(results[0], results[1]);
    expect_same_bits(results[0], results[2]);
  }
  set_threads(before);
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Muon, RefusesForeignState) {
  const auto parameters = parameters_and_matrices();
  const auto adamw = make_optimizer(config_of("adamw"), parameters);
  const auto muon = make_optimizer(config_of("muon"), parameters);
  EXPECT_EQ(message_of([&] { muon->load_state(adamw->state()); }),
            "optimizer state: blocks.0.a.momentum is missing; was it saved by "
            "another optimizer?");
  EXPECT_EQ(message_of([&] { adamw->load_state(muon->state()); }),
            "optimizer state: blocks.0.a.first_moment is missing; was it saved "
            "by another optimizer?");
}

TEST(Optimizer, RefusesForeignStateAndKeepsItsOwn) {
  auto parameters = some_parameters(at::kFloat);
  const auto adam = make_optimizer(config_of("adam"), parameters);
  const auto adafactor = make_optimizer(config_of("adafactor"), parameters);
  run_steps(*adam, parameters, 1, 1);
  const auto before = copy_of(adam->state());

  const auto load = [&](const std::vector<NamedTensor>& state) {
    return message_of([&] { adam->load_state(state); });
  };
  EXPECT_EQ(load(adafactor->state()),
            "optimizer state: p0.first_moment is missing; was it saved by "
            "another optimizer?");
  EXPECT_EQ(load({}),
            "optimizer state: optimizer.steps is missing; was it saved by "
            "another optimizer?");
  auto misshapen = copy_of(before);
  misshapen[3].value = at::zeros({3, 5});
  EXPECT_EQ(load(misshapen),
            "optimizer state: p1.second_moment must be Float [5, 3], got "
            "Float [3, 5]");
  auto too_many = copy_of(before);
  too_many.push_back({"more", at::zeros({1})});
  EXPECT_EQ(load(too_many), "optimizer state: 17 tensors are required, got 18");

  const auto after = adam->state();
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(at::equal(before[i].value, after[i].value));
  }
}

TEST(Optimizer, NamesWhatItCannotTake) {
  EXPECT_EQ(message_of([&] { config_of("sgd"); }),
            "train.optimizer: one of adafactor, adam, adamw, muon is required, "
            "got 'sgd'");
  std::vector<Parameter> parameters = {
      {"w", at::zeros({2, 3}), at::zeros({3, 2})}};
  EXPECT_EQ(
      message_of([&] {
        make_optimizer(config_of("adam"), parameters)->step(parameters, 1);
      }),
      "optimizer: the gradient of w must be Float [2, 3], got Float "
      "[3, 2]");
  parameters[0].value = at::zeros({3, 2}).t();
  EXPECT_EQ(message_of([&] { make_optimizer(config_of("adam"), parameters); }),
            "optimizer: w must be contiguous");
}

}  // namespace
}  // namespace reformer
