// Every fuzz target on its seeds and a few mutants of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

constexpr int kMutants = 1000;  // of each target

// Some bytes overwritten, cut out or repeated.
std::string mutant_of(std::string input, std::mt19937& random) {
  const auto below = [&](size_t n) {
    return random() % std::max<size_t>(n, 1);
  };
  for (size_t changes = 1 + below(4); changes > 0; --changes) {
    const size_t at = below(input.size());
    const size_t length = below(std::min<size_t>(input.size() - at, 16) + 1);
    switch (below(3)) {
      case 0:
        if (!input.empty()) input[at] = static_cast<char>(random());
        break;
      case 1:
        input.erase(at, length);
        break;
      default:
        input.insert(below(input.size()), input.substr(at, length));
    }
  }
  return input;
}

class FuzzTarget : public testing::TestWithParam<Target> {};

TEST_P(FuzzTarget, TakesItsSeeds) {
  const auto seeds = GetParam().seeds();
  EXPECT_FALSE(seeds.empty());
  for (const auto& seed : seeds) EXPECT_NO_THROW(execute(GetParam(), seed));
}

TEST_P(FuzzTarget, TakesNoInputAtAll) {
  EXPECT_NO_THROW(execute(GetParam(), ""));
}

TEST_P(FuzzTarget, TakesOrRefusesMutantsOfItsSeeds) {
  const auto seeds = GetParam().seeds();
  std::mt19937 random(1);  // NOLINT: the same mutants every time
  for (int i = 0; i < kMutants; ++i) {
    const auto mutant = mutant_of(seeds[size_t(i) % seeds.size()], random);
    EXPECT_NO_THROW(execute(GetParam(), mutant))
        << testing::PrintToString(mutant);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FuzzTarget, testing::ValuesIn(targets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace reformer::fuzz
