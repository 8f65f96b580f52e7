#include "cli/attention/head_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace reformer::cli {
namespace {

// Three positions of two dimensions, the last key of no length.
const std::vector<float> kQ = {3, 4, 1, 0, 0, 0};
const std::vector<float> kK = {1, 1, 0, 2, 5, 5};

TEST(HeadWeights, AreASoftmaxOverUnitKeysWhereTheyAreShared) {
  const HeadVectors head{kQ.data(), nullptr, 3, 2};
  const auto values = read_values(head, 0, {1, 2});  // scores 3 and 0
  ASSERT_EQ(values.size(), 2);
  EXPECT_EQ(values[0].position, 1);
  EXPECT_NEAR(values[0].weight, 1 / (1 + std::exp(-3)), 1e-12);
  EXPECT_NEAR(values[0].weight + values[1].weight, 1, 1e-12);
}

TEST(HeadWeights, OfKeysOfTheirOwnAreScaled) {
  const HeadVectors head{kQ.data(), kK.data(), 3, 2};
  const auto values = read_values(head, 0, {0, 1});  // 7 and 8, by sqrt(2)
  EXPECT_NEAR(values[1].weight / values[0].weight, std::exp(1 / std::sqrt(2)),
              1e-12);
}

TEST(HeadWeights, OfSuccessorHeadsAreOfTheValuesAfterTheKeys) {
  HeadVectors head{kQ.data(), nullptr, 3, 2};
  const auto own = read_values(head, 2, {0, 1});
  head.successors = true;
  const auto next = read_values(head, 2, {0, 1});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(next[i].position, own[i].position + 1);
    EXPECT_EQ(next[i].weight, own[i].weight);
  }
  EXPECT_EQ(value_of_key(head, 2), 2);  // nothing comes after the last
}

TEST(HeadWeights, OfNobodyAreNone) {
  EXPECT_TRUE(read_values({kQ.data(), nullptr, 3, 2}, 0, {}).empty());
}

}  // namespace
}  // namespace reformer::cli
