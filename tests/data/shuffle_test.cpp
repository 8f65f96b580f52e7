#include "reformer/data/shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace reformer {
namespace {

std::vector<int64_t> order(int64_t count, PhiloxKey key) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(shuffled(i, count, key));
  return all;
}

TEST(Shuffle, IsAPermutationOfAnyCount) {
  for (const int64_t count : {1, 2, 3, 4, 5, 7, 16, 17, 33, 1000, 1025}) {
    for (const uint32_t seed : {0u, 1u, 99u}) {
      auto all = order(count, {seed, 5});
      std::sort(all.begin(), all.end());
      std::vector<int64_t> expected(static_cast<size_t>(count));
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(all, expected) << count;
    }
  }
}

TEST(Shuffle, IsAFunctionOfTheKey) {
  EXPECT_EQ(order(1000, {1, 2}), order(1000, {1, 2}));
  EXPECT_NE(order(1000, {1, 2}), order(1000, {1, 3}));
  EXPECT_NE(order(1000, {1, 2}), order(1000, {2, 2}));
}

TEST(Shuffle, CountsBeyond32BitsStayInside) {
  const int64_t count = (int64_t{1} << 40) + 7;
  for (const int64_t i : {int64_t{0}, count / 2, count - 1}) {
    const int64_t to = shuffled(i, count, {3, 4});
    EXPECT_TRUE(to >= 0 && to < count);
  }
}

// Over many keys each of 5 indices goes to each of 5 places about as often: chi
// squared of 25 cells, whose mean is 16 and which exceeds 50 once in a million.
TEST(Shuffle, SendsEveryIndexEverywhere) {
  constexpr int kKeys = 5000;
  std::vector<int> count(25);
  for (uint32_t seed = 0; seed < kKeys; ++seed) {
    for (int64_t i = 0; i < 5; ++i) {
      ++count[static_cast<size_t>(5 * i + shuffled(i, 5, {seed, 0}))];
    }
  }
  double chi_squared = 0;
  for (const int n : count) {
    chi_squared += (n - kKeys / 5.0) * (n - kKeys / 5.0) / (kKeys / 5.0);
  }
  EXPECT_LT(chi_squared, 50);
}

}  // namespace
}  // namespace reformer
