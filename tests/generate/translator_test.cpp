#include "reformer/generate/translator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/log_softmax.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "tests/generate/beam_decoder_checks.h"

namespace reformer {
namespace {

using Tokens = std::vector<int64_t>;

constexpr int64_t kEnd = 2;

Config tiny_config() {
  auto config = beam_config("full", "full");
  config.model.vocabulary = 5;
  return config;
}

// Peaked, so that outputs differ and end.
void sharpen(EncoderDecoder& model, double factor) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) {
    if (parameter.name.ends_with("head.weight")) parameter.value.mul_(factor);
  }
}

TranslatorConfig settings(int64_t beam) {
  TranslatorConfig config;
  config.beam = beam;
  config.end_token = kEnd;
  config.batch = 3;
  return config;
}

Tokens with_end(Tokens source) {
  source.push_back(kEnd);
  return source;
}

std::vector<Hypothesis> exhaustive(const EncoderDecoder& model,
                                   const Tokens& source, int64_t longest) {
  std::vector<Hypothesis> all;
  const std::function<void(const Tokens&, double)> visit =
      [&](const Tokens& text, double log_p) {
        const auto next =
            at::log_softmax(whole_pass_after(model, with_end(source), text), 0);
        const double ended = log_p + next[kEnd].item<double>();
        const auto n = static_cast<int64_t>(text.size());
        all.push_back({text, ended, ended / std::pow((6.0 + n) / 6, 0.6)});
        if (n == longest) return;
        for (int64_t token = 0; token < next.size(0); ++token) {
          if (token == kEnd) continue;
          auto longer = text;
          longer.push_back(token);
          visit(longer, log_p + next[token].item<double>());
        }
      };
  visit({}, 0);
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.score > b.score; });
  return all;
}

TEST(Translator, AWideBeamFindsWhatAnExhaustiveSearchFinds) {
  EncoderDecoder model(tiny_config(), at::kDouble);
  sharpen(model, 2);
  auto config = settings(200);
  config.n_best = 6;
  config.more = 1;
  const std::vector<Tokens> sources = {{1, 3}, {4, 0, 1}, {0}};
  const auto found = Translator(model, config).translate(sources).best;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto all = exhaustive(model, sources[i],
                                static_cast<int64_t>(sources[i].size()) + 1);
    ASSERT_EQ(found[i].size(), 6U);
    for (std::size_t j = 0; j < 6; ++j) {
      EXPECT_EQ(found[i][j].tokens, all[j].tokens) << i << " " << j;
      EXPECT_NEAR(found[i][j].score, all[j].score, 1e-9);
    }
  }
}

TEST(Translator, ABeamOfOneIsGreedy) {
  auto model_config = tiny_config();
  model_config.model.vocabulary = 30;
  EncoderDecoder model(model_config, at::kDouble);
  sharpen(model, 8);
  const std::vector<Tokens> sources = {
      {1, 3, 25}, {4, 0, 1, 9, 9}, {0}, {7, 7}};
  auto config = settings(1);
  config.more = 12;
  const auto found = Translator(model, config).translate(sources).best;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Tokens greedy;
    while (greedy.size() < sources[i].size() + 12) {
      const auto next = whole_pass_after(model, with_end(sources[i]), greedy)
                            .argmax()
                            .item<int64_t>();
      if (next == kEnd) break;
      greedy.push_back(next);
    }
    EXPECT_EQ(found[i][0].tokens, greedy);
  }
}

std::vector<Tokens> some_sources() {
  return {{1, 3, 25}, {}, {4, 0, 1, 9, 9}, {0}, {7, 7}, {3, 3, 3, 3, 3, 3}, {}};
}

TEST(Translator, SourcesDoNotInfluenceEachOther) {
  auto model_config = tiny_config();
  model_config.model.vocabulary = 30;
  EncoderDecoder model(model_config, at::kDouble);
  sharpen(model, 6);
  const auto sources = some_sources();
  for (const bool drawn : {false, true}) {
    auto config = settings(4);
    if (drawn) {
      config.sampler = SamplerConfig{};
      config.sampler->seed = 9;
    }
    const Translator translator(model, config);
    std::vector<int> told(sources.size(), 0);
    const auto together = translator.translate(
        sources, [&](std::size_t i, const auto&) { ++told[i]; });
    int64_t tokens = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      EXPECT_EQ(told[i], 1);
      const auto alone = translator.translate({sources[i]}, {}, nullptr,
                                              static_cast<int64_t>(i));
      ASSERT_EQ(together.best[i].size(), 1U);
      EXPECT_EQ(together.best[i][0].tokens, alone.best[0][0].tokens) << i;
      EXPECT_NEAR(together.best[i][0].score, alone.best[0][0].score, 1e-9);
      if (sources[i].empty()) {
        EXPECT_TRUE(alone.best[0][0].tokens.empty());
      } else {
        tokens += std::ssize(alone.best[0][0].tokens) + 1;
      }
    }
    EXPECT_EQ(together.tokens, tokens);
  }
}

TEST(Translator, DrawsAreAFunctionOfTheSeed) {
  auto model_config = tiny_config();
  model_config.model.vocabulary = 30;
  const EncoderDecoder model(model_config);
  auto config = settings(4);
  const auto translated = [&](uint64_t seed) {
    config.sampler = SamplerConfig{};
    config.sampler->seed = seed;
    return Translator(model, config).translate({{1, 2, 3}}).best[0][0];
  };
  EXPECT_EQ(translated(1).tokens, translated(1).tokens);
  EXPECT_NE(translated(1).tokens, translated(2).tokens);
  // A score is what the model says of the text, not of the draw.
  config.sampler->temperature = 0;
  const auto greedy = Translator(model, config).translate({{1, 2, 3}});
  config.sampler = {};
  config.beam = 1;
  const auto searched = Translator(model, config).translate({{1, 2, 3}});
  EXPECT_EQ(greedy.best[0][0].tokens, searched.best[0][0].tokens);
  EXPECT_NEAR(greedy.best[0][0].score, searched.best[0][0].score, 1e-4);
}

TEST(Translator, OutputsAreNoLongerThanAllowed) {
  auto model_config = tiny_config();
  model_config.model.positions = "learned";
  model_config.train.length = 12;
  const EncoderDecoder model(model_config);
  auto config = settings(2);
  config.more = 3;
  const Translator translator(model, config);
  EXPECT_EQ(translator.most_source(), 11);
  for (const auto& best : translator.translate({{1, 1}, Tokens(40, 3)}).best) {
    EXPECT_LE(best[0].tokens.size(), 11U);
  }
}

TEST(Translator, StopsWhenToldTo) {
  const EncoderDecoder model(tiny_config());
  const std::atomic<bool> stop = true;
  EXPECT_THROW(Translator(model, settings(2)).translate({{1}}, {}, &stop),
               Interrupted);
}

TEST(Translator, RefusesWhatCannotBe) {
  const EncoderDecoder model(tiny_config());
  const auto throws = [&](auto change) {
    auto config = settings(2);
    change(config);
    EXPECT_THROW(Translator(model, config), Error);
  };
  throws([](auto& config) { config.beam = 0; });
  throws([](auto& config) { config.n_best = 3; });
  throws([](auto& config) { config.batch = 0; });
  throws([](auto& config) { config.end_token = 5; });
  throws([](auto& config) { config.more = -1; });
  throws([](auto& config) {
    config.sampler = SamplerConfig{};
    config.n_best = 2;
  });
  throws([](auto& config) {
    config.sampler = SamplerConfig{};
    config.sampler->top_p = 0;
  });
}

}  // namespace
}  // namespace reformer
