#include "reformer/ops/top_tokens.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sort.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Log-softmax and a stable sort of everything, in float64.
void expect_top(const at::Tensor& top, const at::Tensor& logits, int64_t k,
                int64_t besides, double tolerance) {
  const auto log_p = at::log_softmax(logits.to(at::kDouble), 1);
  const auto [sorted, tokens] = at::sort(
      logits.to(at::kDouble), /*stable=*/true, /*dim=*/1, /*descending=*/true);
  ASSERT_EQ(top.size(1), 2 * k + 1);
  const auto wanted = log_p.gather(1, tokens).narrow(1, 0, k);
  EXPECT_LE((top.narrow(1, 0, k) - wanted).abs().max().item<double>(),
            tolerance);
  EXPECT_TRUE(top.narrow(1, k, k).to(at::kLong).equal(tokens.narrow(1, 0, k)));
  EXPECT_LE((top.select(1, 2 * k) - log_p.select(1, besides))
                .abs()
                .max()
                .item<double>(),
            tolerance);
}

TEST(TopTokens, AreTheLargestOfTheLogSoftmax) {
  for (const int64_t vocabulary : {1, 7, 64, 65, 1000, 32001}) {
    for (const int64_t k : {1, 5, 9}) {
      if (k > vocabulary) continue;
      for (const auto type : {at::kFloat, at::kDouble}) {
        const auto logits = (at::randn({9, vocabulary}, type) * 6 + 20);
        expect_top(top_tokens(logits, k, vocabulary / 2), logits, k,
                   vocabulary / 2, type == at::kFloat ? 2e-5 : 1e-12);
      }
    }
  }
}

TEST(TopTokens, TheLowerOfEqualsComesFirst) {
  const auto logits = at::randint(0, 5, {33, 1000}, at::kFloat);
  expect_top(top_tokens(logits, 9, 0), logits, 9, 0, 2e-5);
}

TEST(TopTokens, PartsOfTheVocabularyAreAsTheWhole) {
  const auto logits = at::randn({17, 3000}) * 5;
  TopTokens top(17, 5, 2999, at::kFloat);
  for (const auto& part : logits.split({1000, 1, 1999}, 1)) top.add(part);
  expect_top(top.result(), logits, 5, 2999, 2e-5);
}

TEST(TopTokens, ReadsOddViews) {
  const auto logits = at::randn({31, 40}) * 5;
  expect_top(top_tokens(logits.t(), 5, 3), logits.t(), 5, 3, 2e-5);
  const auto part = logits.narrow(1, 3, 33);
  expect_top(top_tokens(part, 5, 3), part, 5, 3, 2e-5);
}

TEST(TopTokens, RowsThatAreNotFiniteHaveNoProbabilities) {
  for (const double wrong : {std::nan(""), kInfinity}) {
    for (const int64_t at : {0, 15, 16, 77, 199}) {
      auto logits = at::randn({3, 200});
      logits[1][at] = wrong;
      const auto top = top_tokens(logits, 4, 0);
      EXPECT_TRUE(top[1].narrow(0, 0, 4).isnan().all().item<bool>()) << at;
      EXPECT_FALSE(top[0].isnan().any().item<bool>());
      EXPECT_FALSE(top[2].isnan().any().item<bool>());
    }
  }
  const auto none = top_tokens(at::full({1, 40}, -kInfinity), 4, 0);
  EXPECT_TRUE(none.narrow(1, 0, 4).isnan().all().item<bool>());
}

TEST(TopTokens, MinusInfinityIsNoProbability) {
  auto logits = at::full({1, 70}, -kInfinity);
  logits[0][66] = 3;
  logits[0][2] = 3;
  const auto top = top_tokens(logits, 3, 5);
  EXPECT_NEAR(top[0][0].item<double>(), std::log(0.5), 1e-6);
  EXPECT_NEAR(top[0][1].item<double>(), std::log(0.5), 1e-6);
  EXPECT_EQ(top[0][2].item<double>(), -kInfinity);
  EXPECT_EQ(top[0][3].item<double>(), 2);
  EXPECT_EQ(top[0][4].item<double>(), 66);
  EXPECT_EQ(top[0][6].item<double>(), -kInfinity);
}

TEST(TopTokens, RefusesWhatCannotBe) {
  const auto logits = at::randn({2, 10});
  EXPECT_THROW(top_tokens(logits, 0, 0), Error);
  EXPECT_THROW(top_tokens(logits, 11, 0), Error);
  EXPECT_THROW(top_tokens(logits, 2, 10), Error);
  EXPECT_THROW(top_tokens(logits, 2, -1), Error);
  EXPECT_THROW(top_tokens(logits[0], 2, 0), Error);
  EXPECT_THROW(top_tokens(logits.to(at::kLong), 2, 0), Error);
}

}  // namespace
}  // namespace reformer
