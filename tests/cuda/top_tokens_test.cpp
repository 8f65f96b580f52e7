#include "reformer/ops/top_tokens.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace reformer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// As on the CPU, whose reference is a sort: the same tokens, and
// log-probabilities but for rounding.
void expect_as_on_cpu(const at::Tensor& logits, int64_t k, int64_t besides) {
  const auto expected = top_tokens(logits, k, besides);
  const auto found = top_tokens(logits.to(at::kCUDA), k, besides).cpu();
  EXPECT_TRUE(found.narrow(1, k, k).equal(expected.narrow(1, k, k)));
  const auto log_p = [&](const at::Tensor& x) {
    return at::cat({x.narrow(1, 0, k), x.narrow(1, 2 * k, 1)}, 1);
  };
  EXPECT_LT((log_p(found) - log_p(expected)).abs().max().item<double>(), 2e-5);
}

TEST(CudaTopTokens, AreThoseOfTheCpu) {
  for (const int64_t vocabulary : {1, 7, 255, 256, 257, 1000, 32001}) {
    for (const int64_t k : {1, 5, 9, 200}) {
      if (k > vocabulary) continue;
      expect_as_on_cpu(at::randn({33, vocabulary}) * 6 + 20, k, vocabulary / 2);
    }
  }
}

// Few values: more of them are equal to the k-th than the block has room for.
TEST(CudaTopTokens, TheLowerOfEqualsComesFirst) {
  expect_as_on_cpu(at::randint(0, 5, {33, 1000}, at::kFloat), 9, 0);
  expect_as_on_cpu(at::randint(0, 2, {5, 32000}, at::kFloat), 9, 0);
  expect_as_on_cpu(at::full({2, 32000}, 3.0f), 9, 0);
}

TEST(CudaTopTokens, ReadsRowsThatAreApart) {
  expect_as_on_cpu((at::randn({31, 400}) * 5).narrow(1, 3, 333), 5, 3);
}

TEST(CudaTopTokens, RowsThatAreNotFiniteHaveNoProbabilities) {
  for (const double wrong : {std::nan(""), kInfinity}) {
    for (const int64_t at : {0, 15, 16, 77, 999}) {
      auto logits = at::randn({3, 1000});
      logits[1][at] = wrong;
      const auto top = top_tokens(logits.to(at::kCUDA), 4, 0).cpu();
      EXPECT_TRUE(std::isnan(top[1][0].item<double>())) << at;
      EXPECT_FALSE(top[0].isnan().any().item<bool>());
      EXPECT_FALSE(top[2].isnan().any().item<bool>());
    }
  }
  const auto none =
      top_tokens(at::full({1, 40}, -kInfinity).to(at::kCUDA), 4, 0).cpu();
  EXPECT_TRUE(none.narrow(1, 0, 4).isnan().all().item<bool>());
}

}  // namespace
}  // namespace reformer
