// Rows that join and leave a decoder on a GPU, where steps are captured.
#include "reformer/generate/continuous_batch.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/generate/decoder_checks.h"

namespace reformer {
namespace {

using namespace decoding;

const Placement kFloat32(at::Device(at::kCUDA, 0), at::kFloat);
constexpr double kRounding = 2e-5;
constexpr int64_t kTexts = 6;

Config any_attention() {
  auto config = small_config("lsh,local,full");
  config.lsh.local_window = 4;
  config.model.ngram_length = 3;
  config.model.ngram_rows = 50;
  config.model.short_convolution = 4;
  return config;
}

Decoder reader_of(const LanguageModel& model, const at::Tensor& tokens,
                  int64_t text, int64_t prompt) {
  Decoder one(model);
  one.prefill(tokens.narrow(0, text, 1).narrow(1, 0, prompt), {prompt});
  return one;
}

// The text alone, from its prompt on: logits of each step.
std::vector<at::Tensor> alone(const LanguageModel& model,
                              const at::Tensor& tokens, int64_t text,
                              int64_t prompt) {
  auto decoder = reader_of(model, tokens, text, prompt);
  std::vector<at::Tensor> logits;
  for (int64_t t = prompt; t + 1 < kLength; ++t) {
    logits.push_back(
        decoder.step(tokens.select(1, t).narrow(0, text, 1))[0].cpu());
  }
  return logits;
}

TEST(CudaContinuousBatch, RowsThatComeAndGoAreWhatEachIsAlone) {
  const LanguageModel model(any_attention(), kFloat32);
  const auto tokens = random_tokens(kTexts, kLength);
  const std::vector<int64_t> prompts = {31, 0, 12, 1, 40, 7};
  const std::vector<int64_t> joins_at = {0, 0, 3, 9, 9, 20};
  const std::vector<int64_t> leaves_at = {18, 40, 12, 33, 30, 50};
  std::vector<std::vector<at::Tensor>> expected;
  for (int64_t text = 0; text < kTexts; ++text) {
    expected.push_back(alone(model, tokens, text, prompts[text]));
  }
  Decoder decoder(model, Decoder::Joining{kTexts});
  std::vector<int64_t> rows;  // which text each row is
  std::vector<int64_t> made(kTexts, 0);
  int64_t compared = 0;
  for (int64_t t = 0; t < 60; ++t) {
    for (int64_t text = 0; text < kTexts; ++text) {
      if (joins_at[text] == t) {
        decoder.join(reader_of(model, tokens, text, prompts[text]));
        rows.push_back(text);
      }
      const auto at = std::find(rows.begin(), rows.end(), text);
      const bool read = prompts[text] + made[text] + 1 >= kLength;
      if (at != rows.end() && (leaves_at[text] == t || read)) {
        decoder.leave(at - rows.begin());
        *at = rows.back();
        rows.pop_back();
      }
    }
    if (rows.empty()) continue;
    auto next = at::empty({std::ssize(rows)}, at::kLong);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const int64_t text = rows[row];
      next[static_cast<int64_t>(row)] =
          tokens[text][prompts[text] + made[text]];
    }
    const auto logits = decoder.step(next).cpu();
    ASSERT_EQ(logits.size(0), std::ssize(rows));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const int64_t text = rows[row];
      const auto& right = expected[text][made[text]++];
      EXPECT_LT(difference(logits[static_cast<int64_t>(row)], right),
                kRounding * right.abs().max().item<double>())
          << "text " << text << ", step " << t;
      ++compared;
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_TRUE(decoder.captured());
}

TEST(CudaContinuousBatch, DrawsWhatEachTextDrawsAlone) {
  const LanguageModel model(any_attention(), kFloat32);
  const auto prompts = random_tokens(kTexts, 20);
  const auto text_of = [&](int64_t i) {
    JoiningText text;
    const auto* tokens = prompts[i].const_data_ptr<int64_t>();
    text.prompt = {tokens, tokens + 3 * i};
    text.sampler.seed = static_cast<uint64_t>(i);
    return text;
  };
  const auto drawn = [&](int64_t most) {
    ContinuousBatch batch(model, most);
    std::map<int64_t, std::vector<int64_t>> texts;
    for (int64_t i = 0; i < kTexts; i += most) {
      std::map<int64_t, int64_t> place;
      for (int64_t j = i; j < std::min(i + most, kTexts); ++j) {
        const auto first = batch.join(text_of(j));
        place[first.text] = j;
        texts[j].push_back(first.token);
      }
      for (int step = 0; step < 20; ++step) {
        for (const auto& token : batch.next()) {
          texts[place[token.text]].push_back(token.token);
        }
      }
      for (const auto& [number, j] : place) batch.leave(number);
    }
    return texts;
  };
  EXPECT_EQ(drawn(1), drawn(kTexts));
}

}  // namespace
}  // namespace reformer
