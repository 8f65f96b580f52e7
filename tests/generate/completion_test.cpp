#include "reformer/generate/completion.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

constexpr int64_t kLength = 20;
constexpr int64_t kGiven = 7;

// Local attention: no bucket can flip by rounding.
class CompletionTest : public testing::Test {
 protected:
  CompletionTest() : model_(small_config_of("local")) {
    shake(model_, /*size=*/0.3);
  }

  at::Tensor given(uint64_t seed) const {
    return random_tokens(model_.config(), seed).narrow(1, 0, kGiven);
  }
  at::Tensor completed(const at::Tensor& given,
                       const CompletionConfig& config) const {
    return complete(model_, given, kLength, config,
                    [](int64_t) { return true; });
  }

  LanguageModel model_;
};

// The slow reference: the whole pass again for each token.
TEST_F(CompletionTest, WithoutChanceItIsTheMostProbableTokenEachTime) {
  const auto begin = given(1);
  CompletionConfig config;
  config.sampler.temperature = 0;
  auto reference = begin;
  for (int64_t at = kGiven; at < kLength; ++at) {
    // The last prediction of a text with any token in its place.
    const auto asked =
        at::cat({reference, at::zeros({reference.size(0), 1}, at::kLong)}, 1);
    const auto logits = model_.logits(asked, evaluation_pass()).detach();
    reference = at::cat({reference, at::argmax(logits.narrow(1, at, 1), 2)}, 1);
  }
  EXPECT_TRUE(at::equal(completed(begin, config), reference));
}

TEST_F(CompletionTest, KeepsWhatIsGivenAndDrawsTheRest) {
  const auto begin = given(2);
  CompletionConfig config;
  config.tokens = 5;
  const auto all = completed(begin, config);
  ASSERT_EQ(all.sizes(), at::IntArrayRef({begin.size(0), kLength}));
  EXPECT_TRUE(at::equal(all.narrow(1, 0, kGiven), begin));
  const auto drawn = all.narrow(1, kGiven, kLength - kGiven);
  EXPECT_LT(drawn.max().item<int64_t>(), 5);
  EXPECT_GT(drawn.max().item<int64_t>(), 0);
  EXPECT_TRUE(at::equal(all, completed(begin, config)));
  config.sampler.seed = 1;
  EXPECT_FALSE(at::equal(all, completed(begin, config)));
}

TEST_F(CompletionTest, StopsWhenItIsTold) {
  const auto begin = given(3);
  CompletionConfig config;
  const auto whole = completed(begin, config);
  int64_t asked = 0;
  const auto part = complete(model_, begin, kLength, config, [&](int64_t made) {
    EXPECT_EQ(made, asked++);
    return made < 4;
  });
  EXPECT_EQ(asked, 5);
  EXPECT_TRUE(
      at::equal(part.narrow(1, 0, kGiven + 4), whole.narrow(1, 0, kGiven + 4)));
  EXPECT_EQ(
      part.narrow(1, kGiven + 4, kLength - kGiven - 4).max().item<int64_t>(),
      0);
}

using Text = std::vector<int64_t>;

constexpr std::size_t kPositions = 16;

Config learned_config() {
  auto config = small_config_of("local");
  config.model.positions = PositionKind::kLearned;
  config.train.length = kPositions;
  return config;
}

Text text_of(int64_t size, int64_t first) {
  Text text;
  for (int64_t i = 0; i < size; ++i) text.push_back((first + 3 * i) % 11);
  return text;
}

CompletionConfig greedy() {
  CompletionConfig config;
  config.sampler.temperature = 0;
  return config;
}

Text continued(Completion& completion, int64_t tokens) {
  for (int64_t i = 0; i < tokens; ++i) completion.next();
  return completion.texts()[0];
}

Text continued(const LanguageModel& model, const Text& begin, int64_t tokens,
               const CompletionConfig& config = greedy()) {
  Completion completion(model, {begin}, config);
  return continued(completion, tokens);
}

at::Tensor next_logits(const LanguageModel& model, const Text& window) {
  auto asked = window;
  asked.push_back(0);
  const auto tokens =
      at::tensor(at::ArrayRef<int64_t>(asked), at::kLong).unsqueeze(0);
  const auto logits = model.logits(tokens, evaluation_pass()).detach();
  return logits[0][static_cast<int64_t>(window.size())];
}

// The slow reference: a whole pass over the window for each token.
Text reference(const LanguageModel& model, Text text, int64_t tokens) {
  Text window = text;
  for (int64_t i = 0; i < tokens; ++i) {
    if (window.size() + 1 > kPositions) {
      window.erase(window.begin(), window.end() - kPositions / 2);
    }
    const auto token = at::argmax(next_logits(model, window)).item<int64_t>();
    text.push_back(token);
    window.push_back(token);
  }
  return text;
}

TEST(MovingWindow, GoesOnFromTheLastHalfWherePositionsEnd) {
  LanguageModel model(learned_config());
  shake(model, /*size=*/0.3);
  for (const int64_t size : {0, 5, 15, 16, 40}) {
    const auto begin = text_of(size, 1);
    Completion completion(model, {begin}, greedy());
    EXPECT_EQ(continued(completion, 50), reference(model, begin, 50)) << size;
    EXPECT_TRUE(completion.moved());
  }
}

TEST(MovingWindow, WhatWasDrawnBeforeItMovesIsUnchanged) {
  LanguageModel model(learned_config());
  shake(model, /*size=*/0.3);
  CompletionConfig config;
  const auto begin = text_of(4, 2);
  Completion within(model, {begin}, config);
  const auto text = continued(within, kPositions - begin.size());
  EXPECT_FALSE(within.moved());
  auto longer = continued(model, begin, 40, config);
  longer.resize(text.size());
  EXPECT_EQ(longer, text);
}

TEST(MovingWindow, RowsMoveByThemselves) {
  LanguageModel model(learned_config());
  shake(model, /*size=*/0.3);
  const std::vector<Text> begins = {text_of(3, 1), text_of(12, 5), {}};
  Completion together(model, begins, greedy());
  continued(together, 30);
  for (std::size_t row = 0; row < begins.size(); ++row) {
    EXPECT_EQ(together.texts()[row], continued(model, begins[row], 30)) << row;
  }
}

TEST(MovingWindow, StaysWherePositionsHaveNoEnd) {
  for (const auto positions :
       {PositionKind::kSinusoid, PositionKind::kRotary}) {
    auto config = learned_config();
    config.model.positions = positions;
    const LanguageModel model(config);
    Completion completion(model, {text_of(3, 1)}, greedy());
    continued(completion, 40);
    EXPECT_FALSE(completion.moved());
  }
}

class AppendTest : public CompletionTest {};

// Few tokens are read one by one, many in a pass.
TEST_F(AppendTest, TextsGoOnAfterWhatIsAddedAsIfItHadBeenThere) {
  for (const int64_t size : {1, 2, 30}) {
    Completion completion(model_, {text_of(40, 1)}, greedy());
    auto whole = continued(completion, 5);
    const auto added = text_of(size, 4);
    completion.append(added);
    whole.insert(whole.end(), added.begin(), added.end());
    EXPECT_EQ(continued(completion, 10), continued(model_, whole, 10)) << size;
  }
  Completion two(model_, {{1}, {2}}, greedy());
  EXPECT_THROW(two.append({1}), Error);
  EXPECT_THROW(Completion(model_, {}, greedy()), Error);
}

TEST_F(AppendTest, AnInterruptedTextGoesOnAsIfNothingHadHappened) {
  std::atomic<bool> stop{false};
  const PrefillWatch watch{&stop, [&](double) { stop = true; }};
  Completion completion(model_, {text_of(20, 1)}, greedy());
  EXPECT_THROW(completion.next(watch), Interrupted);
  EXPECT_THROW(completion.read(watch), Interrupted);
  EXPECT_EQ(completion.texts()[0], text_of(20, 1));
  EXPECT_EQ(continued(completion, 5), continued(model_, text_of(20, 1), 5));
  EXPECT_THROW(completion.next(watch), Interrupted);  // between steps
  EXPECT_EQ(continued(completion, 5), continued(model_, text_of(20, 1), 10));
}

TEST_F(AppendTest, ThePenaltyIsOnPromptsAndOnWhatWasDrawn) {
  auto config = greedy();
  config.sampler.repetition_penalty = 1.5;
  config.sampler.repetition_window = 6;
  auto text = text_of(4, 1);
  const auto drawn = continued(model_, text, 20, config);
  for (int i = 0; i < 20; ++i) {
    auto logits = next_logits(model_, text);
    const auto recent = std::min<std::size_t>(text.size(), 6);
    const std::set<int64_t> tokens(text.end() - std::ptrdiff_t(recent),
                                   text.end());
    for (const int64_t token : tokens) {
      logits[token] *= logits[token].item<double>() > 0 ? 1 / 1.5 : 1.5;
    }
    text.push_back(at::argmax(logits).item<int64_t>());
  }
  EXPECT_EQ(drawn, text);
  EXPECT_NE(drawn, continued(model_, text_of(4, 1), 20));
}

}  // namespace
}  // namespace reformer
