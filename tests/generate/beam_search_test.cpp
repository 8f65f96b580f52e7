#include "reformer/generate/beam_search.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "reformer/base/errors.h"
#include "reformer/base/philox.h"

namespace reformer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Tokens = std::vector<int64_t>;

// A made language: the logits of the token after `prefix` in sentence
// `sentence` are a function of all three, of a spread that lets hypotheses
// cross. The last token is the end.
struct MadeLanguage {
  int64_t vocabulary = 4;
  uint32_t seed = 0;
  double spread = 3;
  double end_bonus = 0;

  int64_t end() const { return vocabulary - 1; }

  std::vector<double> logits(int64_t sentence, const Tokens& prefix) const {
    uint32_t hash = 17 + static_cast<uint32_t>(sentence);
    for (const int64_t token : prefix)
      hash = hash * 31 + static_cast<uint32_t>(token) + 1;
    std::vector<double> all;
    for (int64_t token = 0; token < vocabulary; ++token) {
      const auto bits =
          philox({seed, 0}, {hash, static_cast<uint32_t>(token), 0, 0});
      all.push_back(spread * double(bits[0]) / 4294967296.0);
    }
    all.back() += end_bonus;
    return all;
  }
  std::vector<double> log_p(int64_t sentence, const Tokens& prefix) const {
    const auto x = logits(sentence, prefix);
    double sum = 0;
    for (const double logit : x) sum += std::exp(logit);
    std::vector<double> all;
    for (const double logit : x) all.push_back(logit - std::log(sum));
    return all;
  }
};

// Follows rows by their parents, as a decoder's caches do.
class MadeDecoder {
 public:
  explicit MadeDecoder(const MadeLanguage& language) : language_(language) {}

  at::Tensor operator()(const BeamRows& rows) {
    std::vector<Tokens> prefixes;
    std::vector<at::Tensor> logits;
    for (std::size_t row = 0; row < rows.tokens.size(); ++row) {
      Tokens prefix;
      if (steps_ > 0) {
        prefix = prefixes_.at(static_cast<std::size_t>(rows.parents[row]));
        prefix.push_back(rows.tokens[row]);
      }
      const auto x = language_.logits(rows.sentences[row], prefix);
      logits.push_back(at::tensor(at::ArrayRef<double>(x), at::kDouble));
      prefixes.push_back(prefix);
    }
    prefixes_ = prefixes;
    rows_of_steps.push_back(static_cast<int64_t>(rows.tokens.size()));
    ++steps_;
    return at::stack(logits);
  }

  std::vector<int64_t> rows_of_steps;

 private:
  const MadeLanguage& language_;
  int64_t steps_ = 0;
  std::vector<Tokens> prefixes_;
};

BeamConfig settings(const MadeLanguage& language, int64_t beam, double alpha,
                    int64_t n_best = 1) {
  BeamConfig config;
  config.beam = beam;
  config.length_penalty = alpha;
  config.n_best = n_best;
  config.end_token = language.end();
  return config;
}

// All outputs of up to `longest` tokens, the best first.
std::vector<Hypothesis> exhaustive(const MadeLanguage& language,
                                   int64_t sentence, int64_t longest,
                                   double alpha) {
  std::vector<Hypothesis> all;
  const std::function<void(const Tokens&, double)> visit =
      [&](const Tokens& prefix, double log_p) {
        const auto next = language.log_p(sentence, prefix);
        const auto n = static_cast<int64_t>(prefix.size());
        const double ended = log_p + next.back();
        all.push_back({prefix, ended,
                       ended / std::pow((5.0 + double(n) + 1) / 6.0, alpha)});
        if (n == longest) return;
        for (int64_t token = 0; token < language.end(); ++token) {
          Tokens longer = prefix;
          longer.push_back(token);
          visit(longer, log_p + next[static_cast<std::size_t>(token)]);
        }
      };
  visit({}, 0);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.score > b.score;
  });
  return all;
}

void expect_same(const std::vector<Hypothesis>& found,
                 const std::vector<Hypothesis>& expected, std::size_t n) {
  ASSERT_EQ(found.size(), n);
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(found[i].tokens, expected[i].tokens) << i;
    EXPECT_NEAR(found[i].score, expected[i].score, 1e-12);
    EXPECT_NEAR(found[i].log_probability, expected[i].log_probability, 1e-12);
  }
}

TEST(BeamSearch, AWideBeamFindsWhatAnExhaustiveSearchFinds) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    for (const double alpha : {0.0, 0.6, 2.0, -0.5}) {
      const MadeLanguage language{4, seed};
      MadeDecoder decoder(language);
      const std::vector<int64_t> longest = {3, 4, 0, 2};
      const auto found =
          beam_search(settings(language, 128, alpha, 5), longest,
                      [&](const BeamRows& rows) { return decoder(rows); });
      for (std::size_t sentence = 0; sentence < longest.size(); ++sentence) {
        const auto all = exhaustive(language, static_cast<int64_t>(sentence),
                                    longest[sentence], alpha);
        expect_same(found[sentence], all, std::min<std::size_t>(5, all.size()));
      }
    }
  }
}

// What the header says, without an early end.
std::vector<Hypothesis> plain_beam_search(const MadeLanguage& language,
                                          int64_t sentence, int64_t longest,
                                          const BeamConfig& config) {
  struct Going {
    Tokens tokens;
    double log_p;
  };
  std::vector<Going> live = {{{}, 0}};
  std::vector<Hypothesis> finished;
  for (int64_t n = 0; !live.empty(); ++n) {
    std::vector<Going> all;
    for (const auto& going : live) {
      const auto next = language.log_p(sentence, going.tokens);
      for (int64_t token = 0; token < language.vocabulary; ++token) {
        if (n == longest && token != language.end()) continue;
        auto longer = going.tokens;
        longer.push_back(token);
        all.push_back(
            {longer, going.log_p + next[static_cast<std::size_t>(token)]});
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.log_p > b.log_p;
    });
    live.clear();
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const bool ends = all[rank].tokens.back() == language.end();
      if (!ends && std::ssize(live) < config.beam) live.push_back(all[rank]);
      if (ends && static_cast<int64_t>(rank) < config.beam) {
        auto tokens = all[rank].tokens;
        tokens.pop_back();
        finished.push_back(
            {tokens, all[rank].log_p,
             all[rank].log_p / length_penalty(n + 1, config.length_penalty)});
      }
    }
    if (std::ssize(finished) >= config.beam) break;
  }
  std::stable_sort(
      finished.begin(), finished.end(),
      [](const auto& a, const auto& b) { return a.score > b.score; });
  return finished;
}

TEST(BeamSearch, EndsEarlyWithoutALoss) {
  int64_t steps = 0;
  int64_t most = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    for (const double alpha : {0.0, 0.6, 1.0}) {
      for (const int64_t beam : {1, 2, 3, 5}) {
        const MadeLanguage language{7, seed, /*spread=*/5, /*end_bonus=*/1};
        const auto config = settings(language, beam, alpha, (beam + 1) / 2);
        const std::vector<int64_t> longest = {12, 3, 20};
        MadeDecoder decoder(language);
        const auto found =
            beam_search(config, longest,
                        [&](const BeamRows& rows) { return decoder(rows); });
        steps += std::ssize(decoder.rows_of_steps);
        most += 21;
        for (std::size_t i = 0; i < longest.size(); ++i) {
          const auto all = plain_beam_search(language, static_cast<int64_t>(i),
                                             longest[i], config);
          expect_same(found[i], all,
                      std::min<std::size_t>(
                          static_cast<std::size_t>(config.n_best), all.size()));
        }
      }
    }
  }
  EXPECT_LT(steps, most * 2 / 3);
}

TEST(BeamSearch, ABeamOfOneIsGreedy) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const MadeLanguage language{9, seed, 4, 0.5};
    MadeDecoder decoder(language);
    const auto found =
        beam_search(settings(language, 1, 0.6), {15},
                    [&](const BeamRows& rows) { return decoder(rows); });
    Tokens greedy;
    while (greedy.size() < 15) {
      const auto next = language.log_p(0, greedy);
      const auto best = std::max_element(next.begin(), next.end());
      if (best - next.begin() == language.end()) break;
      greedy.push_back(best - next.begin());
    }
    EXPECT_EQ(found[0][0].tokens, greedy);
  }
}

TEST(BeamSearch, SentencesDoNotInfluenceEachOther) {
  const MadeLanguage language{11, 3, 4, 0.5};
  const std::vector<int64_t> longest = {9, 1, 14, 5, 30};
  const auto config = settings(language, 4, 0.6, 4);
  MadeDecoder decoder(language);
  const auto together = beam_search(
      config, longest, [&](const BeamRows& rows) { return decoder(rows); });
  for (std::size_t i = 0; i < longest.size(); ++i) {
    MadeDecoder of_one(language);
    const auto alone = beam_search(config, {longest[i]}, [&](BeamRows rows) {
      for (auto& sentence : rows.sentences) sentence = static_cast<int64_t>(i);
      return of_one(rows);
    });
    expect_same(together[i], alone[0], alone[0].size());
  }
}

TEST(BeamSearch, FinishedSentencesLeaveTheBatch) {
  const MadeLanguage language{11, 3, 4, 0.5};
  MadeDecoder decoder(language);
  beam_search(settings(language, 4, 0.6), {1, 1, 1, 30, 1},
              [&](const BeamRows& rows) { return decoder(rows); });
  EXPECT_EQ(decoder.rows_of_steps[0], 5);  // one hypothesis each
  EXPECT_EQ(decoder.rows_of_steps[1], 20);
  EXPECT_LE(decoder.rows_of_steps[2], 4);
}

TEST(BeamSearch, EqualsAreOrderedByRowThenToken) {
  BeamConfig config;
  config.beam = 2;
  config.n_best = 2;
  config.end_token = 4;
  const auto found = beam_search(config, {2}, [](const BeamRows& rows) {
    auto logits =
        at::full({static_cast<int64_t>(rows.tokens.size()), 5}, 1, at::kDouble);
    logits.select(1, 4).fill_(-5);
    return logits;
  });
  EXPECT_EQ(found[0][0].tokens, (Tokens{0, 0}));
  EXPECT_EQ(found[0][1].tokens, (Tokens{0, 1}));
}

TEST(BeamSearch, TokensOfNoProbabilityAreNeverChosen) {
  BeamConfig config;
  config.beam = 4;
  config.end_token = 3;
  const auto found = beam_search(config, {3}, [](const BeamRows& rows) {
    auto logits = at::full({static_cast<int64_t>(rows.tokens.size()), 4},
                           -kInfinity, at::kDouble);
    logits.select(1, 2).fill_(0);
    logits.select(1, 3).fill_(-1);
    return logits;
  });
  for (const int64_t token : found[0][0].tokens) EXPECT_EQ(token, 2);
}

TEST(BeamSearch, NoSentencesAreNoWork) {
  EXPECT_TRUE(beam_search({}, {}, [](const BeamRows&) {
                ADD_FAILURE();
                return at::Tensor();
              }).empty());
}

TEST(BeamSearch, RefusesWhatCannotBe) {
  const auto throws = [](const BeamConfig& config) {
    EXPECT_THROW(BeamSearch(config, {3}), Error);
  };
  BeamConfig config;
  config.beam = 0;
  throws(config);
  config.beam = 2;
  config.n_best = 3;
  throws(config);
  config.n_best = 0;
  throws(config);
  config.n_best = 1;
  config.length_penalty = kInfinity;
  throws(config);
  EXPECT_THROW(BeamSearch({}, {-1}), Error);
  EXPECT_THROW(beam_search({}, {3},
                           [](const BeamRows&) {
                             return at::full({1, 9}, std::nan(""), at::kDouble);
                           }),
               Error);
}

}  // namespace
}  // namespace reformer
