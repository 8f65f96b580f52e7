#include "reformer/ops/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reformer/base/errors.h"
#include "tests/support/cases.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

// RoFormer's equation, with library calls.
at::Tensor plainly(const at::Tensor& x, const RotaryConfig& config,
                   int64_t first) {
  const int64_t pairs = config.pairs;
  const auto rate =
      (at::arange(pairs, at::kDouble) * (-std::log(10000.0) / double(pairs)))
          .exp();
  const auto angle =
      at::arange(first, first + x.size(2), at::kDouble).unsqueeze(1) * rate;
  const auto turning =
      x.narrow(1, config.first_head, x.size(1) - config.first_head);
  const auto a = turning.narrow(3, 0, pairs);
  const auto b = turning.narrow(3, pairs, pairs);
  const auto rest = turning.narrow(3, 2 * pairs, x.size(3) - 2 * pairs);
  return at::cat({x.narrow(1, 0, config.first_head),
                  at::cat({a * angle.cos() - b * angle.sin(),
                           a * angle.sin() + b * angle.cos(), rest},
                          3)},
                 1);
}

TEST(Rotary, TurnsPairsByTheirPositions) {
  const auto x = normal({2, 3, 70, 24}, 1).to(at::kDouble);
  for (const RotaryConfig config :
       {RotaryConfig{0, 12}, {1, 6}, {2, 1}, {0, 5}}) {
    for (const int64_t first : {0, 1, 1000000}) {
      const auto start = at::full({2}, first, at::kLong);
      EXPECT_LT(max_error(rotary(x, config, start), plainly(x, config, first)),
                1e-9)
          << config.pairs << " pairs from " << first;
      EXPECT_LT(max_error(rotary(x.to(at::kFloat), config, start),
                          plainly(x, config, first)),
                2e-6);
    }
    EXPECT_TRUE(same_bits(rotary(x, config),
                          rotary(x, config, at::full({2}, 0, at::kLong))));
  }
}

TEST(Rotary, RowsOfABatchHavePositionsOfTheirOwn) {
  const auto x = normal({2, 2, 5, 16}, 2);
  const auto first = at::full({2}, 7, at::kLong);
  first[1] = 300;
  const RotaryConfig config{0, 8};
  const auto both = rotary(x, config, first);
  for (const int64_t row : {0, 1}) {
    const auto alone =
        rotary(x.narrow(0, row, 1), config, first.narrow(0, row, 1).clone());
    EXPECT_TRUE(same_bits(both.narrow(0, row, 1), alone));
  }
}

TEST(Rotary, ProductsDependOnDistancesAlone) {
  const auto q = normal({1, 1, 1, 32}, 3).to(at::kDouble);
  const auto k = normal({1, 1, 1, 32}, 4).to(at::kDouble);
  const auto product = [&](int64_t at_q, int64_t at_k) {
    const RotaryConfig config{0, 16};
    return (rotary(q, config, at::full({1}, at_q, at::kLong)) *
            rotary(k, config, at::full({1}, at_k, at::kLong)))
        .sum()
        .item<double>();
  };
  EXPECT_NEAR(product(100, 90), product(60010, 60000), 1e-9);
  EXPECT_GT(std::abs(product(100, 90) - product(100, 80)), 1e-3);
}

TEST(Rotary, TheGradientTurnsBack) {
  const auto x = normal({1, 2, 40, 16}, 5).to(at::kDouble).requires_grad_();
  const auto d = normal({1, 2, 40, 16}, 6).to(at::kDouble);
  const RotaryConfig config{1, 6};
  const auto y = rotary(by_positions(x), config);
  y.backward(d);
  const auto reference = x.detach().clone().requires_grad_();
  plainly(reference, config, 0).backward(d);
  EXPECT_LT(max_error(x.grad(), reference.grad()), 1e-12);
}

TEST(Rotary, RefusesWhatDoesNotFit) {
  const auto x = normal({2, 2, 5, 16}, 7);
  EXPECT_THROW(rotary(x, {0, 9}), Error);
  EXPECT_THROW(rotary(x, {3, 4}), Error);
  EXPECT_THROW(rotary(x, {0, 4}, at::full({3}, 0, at::kLong)), Error);
  EXPECT_THROW(rotary(x, {0, 4}, at::full({2}, 0, at::kInt)), Error);
}

}  // namespace
}  // namespace reformer
