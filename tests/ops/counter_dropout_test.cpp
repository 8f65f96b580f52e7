#include "reformer/ops/counter_dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reformer/base/errors.h"
#include "reformer/base/parallel.h"
#include "reformer/base/philox.h"

namespace reformer {
namespace {

constexpr double kProbability = 0.3;
const DropoutKey kKey{11, 5, 2};

// Within [-1, 1], none 0.
at::Tensor numbers(uint32_t seed = 1) {
  auto x = at::empty({3, 130, 21});
  auto* data = x.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const auto bits = philox({seed, 0}, {static_cast<uint32_t>(i), 0, 0, 0});
    data[i] = static_cast<float>((bits[0] + 0.5) * 0x1p-31 - 1);
  }
  return x;
}

TEST(CounterDropout, ReplaysExactly) {
  EXPECT_TRUE(at::equal(counter_dropout(numbers(), {kProbability, kKey}),
                        counter_dropout(numbers(), {kProbability, kKey})));
}

TEST(CounterDropout, IsTheSameOnAnyNumberOfThreads) {
  const int before = threads();
  set_threads(1);
  const auto one = counter_dropout(numbers(), {kProbability, kKey});
  set_threads(3);
  const auto three = counter_dropout(numbers(), {kProbability, kKey});
  set_threads(before);
  EXPECT_TRUE(at::equal(one, three));
}

TEST(CounterDropout, TreatsAPartAsWithinTheWhole) {
  const auto whole = counter_dropout(numbers(), {kProbability, kKey});
  for (const auto& [first, n] : {std::pair{0, 7}, {7, 64}, {71, 59}}) {
    const auto part = counter_dropout(numbers().narrow(1, first, n),
                                      {kProbability, kKey, first});
    EXPECT_TRUE(at::equal(part, whole.narrow(1, first, n))) << first;
  }
}

TEST(CounterDropout, TreatsSomeExamplesAsAmongAll) {
  const auto whole = counter_dropout(numbers(), {kProbability, kKey});
  auto key = kKey;
  for (key.first_example = 0; key.first_example < 3; ++key.first_example) {
    auto x = numbers().narrow(0, key.first_example, 1).clone();
    const auto y =
        counter_dropout(x.set_requires_grad(true), {kProbability, key});
    EXPECT_TRUE(at::equal(y, whole.narrow(0, key.first_example, 1)));
    y.sum().backward();
    EXPECT_TRUE(at::equal(x.grad().eq(0), y.eq(0))) << key.first_example;
  }
}

TEST(CounterDropout, ZeroesOrScalesEachElement) {
  const auto x = numbers();
  const auto y = counter_dropout(x, {kProbability, kKey});
  const auto kept = y.ne(0);
  EXPECT_LE((y - x / (1 - kProbability)).mul(kept).abs().max().item<double>(),
            1e-4);
  EXPECT_FALSE(kept.all().item<bool>());
}

// Each mean is over n independent elements: within 4 standard deviations.
void expect_mean_of_one(const at::Tensor& y) {
  const double deviation = std::sqrt(kProbability / (1 - kProbability));
  EXPECT_NEAR(y.mean().item<double>(), 1,
              4 * deviation / std::sqrt(double(y.numel())));
}

TEST(CounterDropout, KeepsTheMeanOverAllAndInEveryColumn) {
  const auto y = counter_dropout(at::ones({4, 2000, 9}), {kProbability, kKey});
  expect_mean_of_one(y);
  for (int64_t c = 0; c < 9; ++c) expect_mean_of_one(y.select(2, c));
  for (int64_t b = 0; b < 4; ++b) expect_mean_of_one(y.select(0, b));
}

// Two masks that had nothing to do with each other agree on p^2 + (1 - p)^2.
void expect_unrelated(const at::Tensor& a, const at::Tensor& b) {
  const double agree =
      kProbability * kProbability + (1 - kProbability) * (1 - kProbability);
  EXPECT_NEAR(a.eq(0).eq(b.eq(0)).to(at::kDouble).mean().item<double>(), agree,
              4 * 0.5 / std::sqrt(double(a.numel())));
}

TEST(CounterDropout, DrawsAnewForEverySeedStepSiteRowPositionAndColumn) {
  const auto x = at::ones({3, 500, 21});
  const auto y = counter_dropout(x, {kProbability, kKey});
  expect_unrelated(y, counter_dropout(x, {kProbability, {12, 5, 2}}));
  expect_unrelated(y, counter_dropout(x, {kProbability, {11, 6, 2}}));
  expect_unrelated(y, counter_dropout(x, {kProbability, {11, 5, 3}}));
  expect_unrelated(y.select(0, 0), y.select(0, 1));
  expect_unrelated(y.narrow(1, 0, 499), y.narrow(1, 1, 499));
  expect_unrelated(y.narrow(2, 0, 20), y.narrow(2, 1, 20));
}

TEST(CounterDropout, HasTheGradientOfItsOwnMask) {
  const auto x = numbers().to(at::kDouble).requires_grad_();
  const auto d_y = numbers(2).to(at::kDouble);
  const auto y = counter_dropout(x, {kProbability, kKey, 9});
  (y * d_y).sum().backward();
  const auto mask = y.detach() / x.detach();
  EXPECT_LE((x.grad() - d_y * mask).abs().max().item<double>(), 1e-12);
}

TEST(CounterDropout, AddsAndConvertsWhatIsDropped) {
  const auto x = numbers();
  const auto sum = numbers(2);
  for (const double probability : {0.0, kProbability}) {
    const auto dropped = counter_dropout(x, {probability, kKey, 9});
    const auto to = at::empty_like(sum);
    add_dropped(to, sum, x, {probability, kKey, 9});
    EXPECT_TRUE(at::equal(to, sum + dropped));
    EXPECT_TRUE(
        at::equal(dropped_as(at::kFloat, x, {probability, kKey, 9}), dropped));
    EXPECT_TRUE(at::equal(
        dropped_as(at::kFloat, x.to(at::kDouble), {probability, kKey, 9}),
        dropped));
  }
}

TEST(CounterDropout, OfNothingReturnsItsArgument) {
  const auto x = numbers();
  EXPECT_TRUE(counter_dropout(x, {0, kKey}).is_same(x));
}

TEST(CounterDropout, RejectsWhatItCannotDrop) {
  const auto x = numbers();
  EXPECT_THROW(add_dropped(x, x.narrow(1, 1, 5), x, {kProbability, kKey}),
               Error);
  EXPECT_THROW(dropped_as(at::kFloat, x, {1, kKey}), Error);
  EXPECT_THROW(counter_dropout(numbers(), {1, kKey}), Error);
  EXPECT_THROW(counter_dropout(numbers(), {-0.1, kKey}), Error);
  EXPECT_THROW(counter_dropout(numbers()[0], {kProbability, kKey}), Error);
  EXPECT_THROW(counter_dropout(numbers().to(at::kInt), {kProbability, kKey}),
               Error);
}

}  // namespace
}  // namespace reformer
