#include "reformer/ops/lsh_rotations.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "reformer/config/bucket_count.h"

namespace reformer {
namespace {

constexpr HashKey kKey{/*seed=*/5, /*step=*/6, /*layer=*/7};

TEST(LshRotations, DoNotDependOnHowManyAreDrawn) {
  const auto all = lsh_rotations(kKey, /*heads=*/4, /*rounds=*/5, 16, 32);
  const auto some = lsh_rotations(kKey, /*heads=*/3, /*rounds=*/2, 16, 32);
  EXPECT_TRUE(some.equal(all.narrow(0, 0, 3).narrow(1, 0, 2)));
  EXPECT_TRUE(all.equal(lsh_rotations(kKey, 4, 5, 16, 32)));
}

TEST(LshRotations, DifferInEveryFieldOfTheKeyInHeadAndInRound) {
  constexpr uint64_t kHigh = uint64_t{1} << 32;
  std::vector<at::Tensor> drawn;
  for (const HashKey& key :
       {HashKey{5, 6, 7}, HashKey{6, 6, 7}, HashKey{5 + kHigh, 6, 7},
        HashKey{5, 7, 7}, HashKey{5, 6 + kHigh, 7}, HashKey{5, 6, 8},
        HashKey{6, 5, 7}, HashKey{5, 7, 6}}) {
    const auto rotations = lsh_rotations(key, 3, 3, 32, 64);
    for (int64_t head = 0; head < 3; ++head) {
      for (int64_t round = 0; round < 3; ++round) {
        drawn.push_back(rotations[head][round].flatten());
      }
    }
  }
  // Independent ones of n numbers correlate by about 1 / sqrt(n).
  const double n = double(drawn.front().numel());
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double correlation = drawn[i].dot(drawn[j]).item<double>() / n;
      ASSERT_LT(std::abs(correlation), 5 / std::sqrt(n)) << i << ", " << j;
    }
  }
}

TEST(LshRotations, AreStandardNormal) {
  const auto x = lsh_rotations(kKey, 8, 8, 64, 128).to(at::kDouble).flatten();
  const double n = double(x.numel());  // 262144
  EXPECT_NEAR(x.mean().item<double>(), 0, 4 / std::sqrt(n));
  EXPECT_NEAR(x.square().mean().item<double>(), 1, 4 * std::sqrt(2 / n));
  EXPECT_NEAR(x.pow(4).mean().item<double>(), 3, 4 * std::sqrt(96 / n));
  const double beyond_two = (x.abs() > 2).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(beyond_two, std::erfc(std::sqrt(2.0)), 0.003);
  // Neighbours come from one counter, cosine and sine of one angle.
  const auto pairs = x.view({-1, 2});
  const double together =
      (pairs.select(1, 0) * pairs.select(1, 1)).mean().item<double>();
  EXPECT_NEAR(together, 0, 4 / std::sqrt(n / 2));
}

TEST(LshRotations, AreExactInBfloat16) {
  const auto x = lsh_rotations(kKey, 2, 2, 64, 256);
  EXPECT_TRUE(x.equal(x.to(at::kBFloat16).to(at::kFloat)));
}

TEST(LshRotations, HaveTheColumnsOfAllFactors) {
  EXPECT_EQ(lsh_rotations(kKey, 2, 3, 40, 1024).sizes(),
            at::IntArrayRef({2, 3, 40, 32}));
}

TEST(LshRotations, LeaveTheGlobalGeneratorAlone) {
  const auto& generator = at::detail::getDefaultCPUGenerator();
  const auto before = generator.get_state();
  lsh_rotations(kKey, 2, 2, 16, 32);
  EXPECT_TRUE(generator.get_state().equal(before));
}

}  // namespace
}  // namespace reformer
