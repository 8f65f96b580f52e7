#include "reformer/generate/sampler.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Probabilities 0.08, 0.4, 0.08, 0.24, 0.2: not sorted, with a tie.
const std::vector<double> kLogits = {std::log(2), std::log(10), std::log(2),
                                     std::log(6), std::log(5)};

SamplerConfig settings(double temperature, int64_t top_k, double top_p) {
  SamplerConfig config;
  config.temperature = temperature;
  config.top_k = top_k;
  config.top_p = top_p;
  return config;
}

std::vector<int64_t> tokens_of(const std::vector<Candidate>& from) {
  std::vector<int64_t> tokens;
  for (const auto& candidate : from) tokens.push_back(candidate.token);
  return tokens;
}

double total(const std::vector<Candidate>& from) {
  double sum = 0;
  for (const auto& candidate : from) sum += candidate.probability;
  return sum;
}

at::Tensor one_row(const std::vector<double>& logits) {
  return at::tensor(at::ArrayRef<double>(logits), at::kDouble).unsqueeze(0);
}

std::vector<int64_t> drawn(const SamplerConfig& config, int64_t n) {
  Sampler sampler(config);
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < n; ++i) {
    tokens.push_back(sampler.draw(one_row(kLogits)).item<int64_t>());
  }
  return tokens;
}

TEST(Sampler, ProbabilitiesAreTheSoftmaxOfTheLogits) {
  const auto all = candidates(kLogits, settings(1, 0, 1));
  EXPECT_EQ(tokens_of(all), (std::vector<int64_t>{1, 3, 4, 0, 2}));
  const double expected[] = {0.4, 0.24, 0.2, 0.08, 0.08};
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_NEAR(all[i].probability, expected[i], 1e-12);
  }
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  for (const double p :
       {0.01, 0.39, 0.41, 0.63, 0.65, 0.83, 0.85, 0.91, 0.99}) {
    const auto all = candidates(kLogits, settings(1, 0, 1));
    const auto kept = candidates(kLogits, settings(1, 0, p));
    double mass = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) mass += all[i].probability;
    EXPECT_GE(mass, p);
    EXPECT_LT(mass - all[kept.size() - 1].probability, p);
    EXPECT_NEAR(total(kept), 1, 1e-12);
  }
}

TEST(Sampler, TopKKeepsTheMostProbableAndTheLowerTokenOfATie) {
  EXPECT_EQ(tokens_of(candidates(kLogits, settings(1, 4, 1))),
            (std::vector<int64_t>{1, 3, 4, 0}));
  EXPECT_EQ(candidates(kLogits, settings(1, 99, 1)).size(), kLogits.size());
}

TEST(Sampler, TopPCountsTheMassThatTopKLeft) {
  // Of 0.4 and 0.24 the first has 0.625.
  EXPECT_EQ(candidates(kLogits, settings(1, 2, 0.62)).size(), 1u);
  EXPECT_EQ(candidates(kLogits, settings(1, 2, 0.63)).size(), 2u);
}

TEST(Sampler, TemperatureDividesTheLogits) {
  const auto cold = candidates(kLogits, settings(0.5, 0, 1));
  EXPECT_NEAR(cold[0].probability / cold[1].probability,
              std::pow(0.4 / 0.24, 2), 1e-9);
  const auto frozen = candidates(kLogits, settings(1e-300, 0, 1));
  EXPECT_DOUBLE_EQ(frozen[0].probability, 1);
}

TEST(Sampler, TemperatureZeroIsGreedy) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    auto config = settings(0, 3, 0.9);
    config.seed = seed;
    EXPECT_EQ(drawn(config, 1), std::vector<int64_t>{1});
  }
  EXPECT_EQ(
      tokens_of(candidates(std::vector<double>{1, 3, 3}, settings(0, 0, 1))),
      std::vector<int64_t>{1});
}

TEST(Sampler, TheSameSeedDrawsTheSameAndAnotherDoesNot) {
  auto config = settings(1, 0, 1);
  config.seed = 7;
  const auto first = drawn(config, 40);
  EXPECT_EQ(drawn(config, 40), first);
  config.seed = 8;
  EXPECT_NE(drawn(config, 40), first);
  config.seed = 7 + (uint64_t{1} << 32);
  EXPECT_NE(drawn(config, 40), first);
}

TEST(Sampler, ARowDrawsTheSameWhateverTheOtherRows) {
  const auto row = one_row(kLogits);
  Sampler alone(settings(1, 0, 1));
  Sampler together(settings(1, 0, 1));
  bool rows_differ = false;
  for (int i = 0; i < 40; ++i) {
    const auto both = together.draw(at::stack({row[0], row[0]}));
    EXPECT_EQ(both[0].item<int64_t>(), alone.draw(row).item<int64_t>());
    rows_differ |= both[0].item<int64_t>() != both[1].item<int64_t>();
  }
  EXPECT_TRUE(rows_differ);
}

TEST(Sampler, FrequenciesMatchProbabilities) {
  constexpr int64_t kDraws = 20000;
  const auto config = settings(0.8, 4, 0.95);
  const auto kept = candidates(kLogits, config);
  ASSERT_EQ(kept.size(), 4u);
  std::vector<int64_t> counts(kLogits.size(), 0);
  for (const int64_t token : drawn(config, kDraws)) ++counts[token];
  for (const auto& [token, p] : kept) {
    const double deviation = std::sqrt(p * (1 - p) / kDraws);
    EXPECT_NEAR(double(counts[token]) / kDraws, p, 4 * deviation);
    counts[token] = 0;
  }
  for (const int64_t others : counts) EXPECT_EQ(others, 0);
}

TEST(Sampler, RefusesLogitsThatAreNotNumbers) {
  EXPECT_THROW(candidates(std::vector<double>{0, NAN}, {}), Error);
  EXPECT_THROW(candidates(std::vector<double>{0, kInfinity}, {}), Error);
  EXPECT_THROW(candidates(std::vector<double>{-kInfinity}, {}), Error);
  EXPECT_EQ(tokens_of(candidates(std::vector<double>{-kInfinity, 0},
                                 settings(1, 0, 0.999))),
            std::vector<int64_t>{1});
}

SamplerConfig penalty(double repetition_penalty, int64_t window) {
  SamplerConfig config;
  config.repetition_penalty = repetition_penalty;
  config.repetition_window = window;
  return config;
}

// Keskar et al. 2019, Sec. 4.1, with the sign rule: as plain as can be.
std::vector<double> penalised(std::vector<double> logits,
                              const std::vector<int64_t>& text, double by,
                              std::size_t window) {
  for (std::size_t token = 0; token < logits.size(); ++token) {
    bool recent = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool within = window == 0 || i + window >= text.size();
      recent |= within && text[i] == static_cast<int64_t>(token);
    }
    if (!recent) continue;
    logits[token] = logits[token] > 0 ? logits[token] / by : logits[token] * by;
  }
  return logits;
}

TEST(Sampler, PenalisesEachRecentTokenOnceWhateverTheSignOfItsLogit) {
  const std::vector<double> logits = {2, -1, 0, 3, -0.5, 1};
  const std::vector<int64_t> text = {5, 3, 0, 1, 1, 0, 1, 77};
  for (const double by : {0.5, 1.0, 1.2, 10.0}) {
    for (const int64_t window : {0, 1, 2, 3, 6, 8, 100}) {
      auto changed = logits;
      penalise_repetition(changed, text, penalty(by, window));
      EXPECT_EQ(changed, penalised(logits, text, by, window))
          << by << " over " << window;
    }
  }
}

TEST(Sampler, APenaltyMakesWhatWasSaidLessProbable) {
  std::vector<double> logits = {1, 1, -1, -1};
  penalise_repetition(logits, std::vector<int64_t>{0, 2}, penalty(1.3, 0));
  EXPECT_LT(logits[0], logits[1]);
  EXPECT_LT(logits[2], logits[3]);
}

TEST(Sampler, DrawsByThePenaltyOfEachRowsOwnText) {
  auto config = penalty(2, 1);
  config.temperature = 0;
  const auto logits = at::stack({one_row({3, 2, 1})[0], one_row({3, 2, 1})[0]});
  Sampler sampler(config);
  const auto tokens = sampler.draw(logits, {{1, 0}, {0, 1}});
  EXPECT_EQ(tokens[0].item<int64_t>(), 1);
  EXPECT_EQ(tokens[1].item<int64_t>(), 0);
  EXPECT_EQ(logits[0][0].item<double>(), 3);  // the caller's own
  EXPECT_THROW(sampler.draw(logits, {{1}}), Error);
}

TEST(Sampler, RefusesImpossibleSettings) {
  EXPECT_THROW(Sampler(penalty(0, 1)), Error);
  EXPECT_THROW(Sampler(penalty(-1, 1)), Error);
  EXPECT_THROW(Sampler(penalty(NAN, 1)), Error);
  EXPECT_THROW(Sampler(penalty(1.2, -1)), Error);
  EXPECT_THROW(Sampler(settings(-0.1, 0, 1)), Error);
  EXPECT_THROW(Sampler(settings(kInfinity, 0, 1)), Error);
  EXPECT_THROW(Sampler(settings(1, -1, 1)), Error);
  EXPECT_THROW(Sampler(settings(1, 0, 0)), Error);
  EXPECT_THROW(Sampler(settings(1, 0, 1.01)), Error);
  EXPECT_THROW(Sampler(settings(NAN, 0, 1)), Error);
}

TEST(Sampler, RowsDrawTheSameWhenOthersHaveLeft) {
  SamplerConfig config = settings(1, 0, 1);
  config.seed = 11;
  const auto row = one_row(kLogits);
  const auto four = at::stack({row[0], row[0], row[0], row[0]});
  Sampler all(config);
  Sampler fewer(config);
  bool differ = false;
  for (int i = 0; i < 20; ++i) {
    const auto expected = all.draw(four);
    const auto found = fewer.draw(four.narrow(0, 0, 2), {}, {3, 1});
    EXPECT_EQ(found[0].item<int64_t>(), expected[3].item<int64_t>());
    EXPECT_EQ(found[1].item<int64_t>(), expected[1].item<int64_t>());
    differ = differ || !found[0].equal(expected[0]);
  }
  EXPECT_TRUE(differ);
  EXPECT_THROW(fewer.draw(four, {}, {0}), Error);
}

}  // namespace
}  // namespace reformer
