#include "reformer/generate/continuous_batch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/generate/completion.h"
#include "tests/generate/decoder_checks.h"

namespace reformer {
namespace {

using namespace decoding;

using Tokens = std::vector<int64_t>;

Tokens tokens_of(const at::Tensor& row, int64_t n) {
  const auto* at = row.const_data_ptr<int64_t>();
  return {at, at + n};
}

JoiningText text_of(Tokens prompt, uint64_t seed, double temperature = 0.7) {
  JoiningText text;
  text.prompt = std::move(prompt);
  text.sampler.seed = seed;
  text.sampler.temperature = temperature;
  return text;
}

// What `reformer generate` draws.
Tokens drawn_alone(const LanguageModel& model, const JoiningText& text,
                   int64_t length) {
  Completion completion(model, {text.prompt}, {text.sampler});
  Tokens drawn;
  for (int64_t i = 0; i < length; ++i) {
    drawn.push_back(completion.next().item<int64_t>());
  }
  return drawn;
}

Config any_attention() {
  auto config = small_config("lsh,local,full");
  config.lsh.local_window = 4;
  config.model.ngram_length = 3;
  config.lsh.ngrams = {4};
  config.model.ngram_rows = 50;
  config.model.short_convolution = 4;
  return config;
}

// Texts that join and leave at times of their own, in float64, where rounding
// decides no draw.
TEST(ContinuousBatch, TextsThatComeAndGoAreWhatEachIsAlone) {
  const LanguageModel model(any_attention(), at::kDouble);
  const auto prompts = random_tokens(5, kLength);
  const Tokens lengths = {31, 0, 12, 1, 7};
  const Tokens wanted = {9, 17, 3, 12, 20};
  const Tokens joins_at = {0, 0, 2, 5, 6};
  ContinuousBatch batch(model, 4);
  std::map<int64_t, std::size_t> place;  // of a text's number
  std::vector<JoiningText> texts;
  std::vector<Tokens> drawn(5);
  for (std::size_t i = 0; i < 5; ++i) {
    texts.push_back(text_of(
        tokens_of(prompts[static_cast<int64_t>(i)], lengths[i]), 7 + i));
  }
  const auto keep = [&](const DrawnToken& token) {
    const auto i = place.at(token.text);
    drawn[i].push_back(token.token);
    if (std::ssize(drawn[i]) == wanted[i]) batch.leave(token.text);
  };
  for (int64_t step = 0; step < 40; ++step) {
    for (std::size_t i = 0; i < 5; ++i) {
      if (joins_at[i] != step) continue;
      const auto first = batch.join(texts[i]);
      place[first.text] = i;
      keep(first);
    }
    for (const auto& token : batch.next()) keep(token);
  }
  EXPECT_EQ(batch.size(), 0);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(drawn[i], drawn_alone(model, texts[i], wanted[i])) << i;
  }
}

TEST(ContinuousBatch, OthersGoOnJoinAndLeaveWhileAPromptIsRead) {
  const LanguageModel model(any_attention(), at::kDouble);
  const auto prompts = random_tokens(3, kLength);
  const Tokens wanted = {30, 4, 9};
  std::vector<JoiningText> texts;
  for (int64_t i = 0; i < 3; ++i) {
    texts.push_back(text_of(tokens_of(prompts[i], 10 + 10 * i), 3 + i));
  }
  ContinuousBatch batch(model, 3);
  std::map<int64_t, std::size_t> place;
  std::vector<Tokens> drawn(3);
  const auto keep = [&](const DrawnToken& token) {
    const auto i = place.at(token.text);
    drawn[i].push_back(token.token);
    if (std::ssize(drawn[i]) == wanted[i]) batch.leave(token.text);
  };
  const auto join = [&](std::size_t i, DrawnToken first) {
    place[first.text] = i;
    keep(first);
  };
  join(0, batch.join(texts[0]));
  PrefillWatch watch;
  watch.turn = [&] {
    if (drawn[1].empty()) join(1, batch.join(texts[1]));
    for (const auto& token : batch.next()) keep(token);
  };
  auto read = batch.read(texts[2], watch);
  EXPECT_GT(drawn[0].size(), 6u);
  EXPECT_EQ(drawn[1].size(), 4u);  // it has come and gone
  join(2, batch.join(std::move(read)));
  while (batch.size() > 0) {
    for (const auto& token : batch.next()) keep(token);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(drawn[i], drawn_alone(model, texts[i], wanted[i])) << i;
  }
}

TEST(ContinuousBatch, RowsOfADecoderThatJoinEqualTheWholePass) {
  const LanguageModel model(any_attention(), at::kDouble);
  const auto tokens = random_tokens(3, kLength);
  const auto whole = whole_pass(model, tokens);
  Decoder decoder(model, Decoder::Joining{3});
  std::vector<int64_t> rows;  // which text each row is
  std::vector<int64_t> read;
  const auto join = [&](int64_t text, int64_t prompt) {
    Decoder one(model);
    one.prefill(tokens.narrow(0, text, 1).narrow(1, 0, prompt), {prompt});
    decoder.join(std::move(one));
    rows.push_back(text);
    read.push_back(prompt);
  };
  const auto step = [&] {
    auto next = at::empty({decoder.rows()}, at::kLong);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      next[static_cast<int64_t>(row)] = tokens[rows[row]][read[row]];
    }
    const auto logits = decoder.step(next);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto expected = whole[rows[row]][++read[row]];
      EXPECT_LT(difference(logits[static_cast<int64_t>(row)], expected), 1e-9);
    }
  };
  join(0, 30);
  join(1, 3);
  step();
  join(2, 0);
  for (int i = 0; i < 9; ++i) step();
  decoder.leave(0);  // the last takes its place
  rows[0] = rows.back();
  read[0] = read.back();
  rows.pop_back();
  read.pop_back();
  for (int i = 0; i < 9; ++i) step();
  join(0, 41);
  for (int i = 0; i < 9; ++i) step();
  EXPECT_EQ(decoder.rows(), 3);
}

TEST(ContinuousBatch, ProbabilitiesAreTheModelsOwnWhateverTheSampler) {
  const LanguageModel model(any_attention(), at::kDouble);
  auto text = text_of({1, 2, 3}, 4, /*temperature=*/0);
  text.alternatives = 3;
  ContinuousBatch batch(model, 1);
  const auto drawn = batch.join(text);
  const auto tokens = random_tokens(1, 4);
  for (int64_t i = 0; i < 3; ++i) tokens[0][i] = i + 1;
  const auto logits = whole_pass(model, tokens)[0][3];
  const double best = logits.max().item<double>();
  const double sum = (logits - best).exp().sum().item<double>();
  EXPECT_NEAR(drawn.probability, 1 / sum, 1e-9);
  ASSERT_EQ(drawn.alternatives.size(), 3u);
  EXPECT_EQ(drawn.alternatives[0].token, drawn.token);
  EXPECT_GT(drawn.alternatives[0].probability,
            drawn.alternatives[2].probability);
}

TEST(ContinuousBatch, RefusesOneTooManyAndGoesOn) {
  const LanguageModel model(any_attention(), at::kDouble);
  ContinuousBatch batch(model, 1);
  const auto first = batch.join(text_of({1}, 1));
  EXPECT_THROW(batch.join(text_of({1}, 1)), Error);
  EXPECT_EQ(batch.next().size(), 1u);
  EXPECT_THROW(batch.leave(first.text + 1), Error);
  batch.leave(first.text);
  EXPECT_TRUE(batch.next().empty());
  batch.join(text_of({2}, 1));
  EXPECT_EQ(batch.next().size(), 1u);
}

TEST(ContinuousBatch, APromptThatIsStoppedLeavesTheOthersAsTheyWere) {
  const LanguageModel model(any_attention(), at::kDouble);
  ContinuousBatch batch(model, 2);
  const auto text = text_of({5, 6}, 3);
  Tokens drawn = {batch.join(text).token};
  const std::atomic<bool> stop = true;
  PrefillWatch watch;
  watch.stop = &stop;
  EXPECT_THROW(batch.join(text_of(Tokens(40, 1), 1), watch), Interrupted);
  EXPECT_EQ(batch.size(), 1);
  for (int i = 0; i < 10; ++i) drawn.push_back(batch.next().at(0).token);
  EXPECT_EQ(drawn, drawn_alone(model, text, 11));
}

}  // namespace
}  // namespace reformer
