// Long prompts: read in parts, watched, given up.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "reformer/base/interruption.h"
#include "reformer/ops/packed_matrices.h"
#include "tests/generate/decoder_checks.h"

namespace reformer {
namespace {

using namespace decoding;

// A little more than one part of attention's products (attention_cache.cpp).
TEST(Prefill, PromptsOfSeveralPartsAreTheWholePass) {
  constexpr int64_t kLong = 16384 + 34;
  for (const std::string attention : {"local", "lsh"}) {
    auto config = small_config(attention);
    config.model.layers = 1;
    config.model.d_model = 16;
    config.model.d_ff = 8;
    config.model.positions = PositionKind::kRotary;
    config.lsh.n_buckets = 600;
    config.train.length = kLong;
    const LanguageModel model(config, at::kDouble);
    const auto tokens = random_tokens(1, kLong);
    const auto whole = whole_pass(model, tokens).select(1, kLong - 1);
    Decoder decoder(model);
    const auto logits =
        decoder.prefill(tokens.narrow(1, 0, kLong - 1), {kLong - 1});
    EXPECT_LT(difference(logits, whole), 1e-9) << attention;
  }
}

// So long that heads attend one by one (attention_cache.cpp).
TEST(Prefill, TurnsOfOthersChangeNoBit) {
  constexpr int64_t kPrompt = 16384 + 34;
  auto config = small_config("lsh,local");
  config.model.layers = 2;
  config.model.heads = 4;
  config.model.d_head = 8;
  config.model.d_model = 16;
  config.model.d_ff = 8;
  config.model.positions = PositionKind::kRotary;
  config.lsh.n_buckets = 600;
  config.train.length = kPrompt;
  const LanguageModel model(config);
  const auto tokens = random_tokens(2, kPrompt);
  const auto row = [&](int64_t i) { return tokens.narrow(0, i, 1); };
  Decoder other(model);
  other.prefill(row(1).narrow(1, 0, 5), {5});
  std::vector<at::Tensor> between;  // what the other makes of its turns
  PrefillWatch watch;
  watch.turn = [&] {
    if (between.size() == 20) return;
    const auto at = 5 + static_cast<int64_t>(between.size());
    between.push_back(other.step(tokens[1].narrow(0, at, 1)));
  };
  Decoder taking(model);
  Decoder plain(model);
  const auto with = taking.prefill(row(0), {kPrompt}, nullptr, watch);
  const auto without = plain.prefill(row(0), {kPrompt});
  EXPECT_TRUE(with.equal(without));
  const auto next = tokens[1].narrow(0, 0, 1);
  EXPECT_TRUE(taking.step(next).equal(plain.step(next)));
  EXPECT_EQ(between.size(), 20u);
  Decoder alone(model);
  alone.prefill(row(1).narrow(1, 0, 5), {5});
  for (int64_t i = 0; i < std::ssize(between); ++i) {
    EXPECT_TRUE(alone.step(tokens[1].narrow(0, 5 + i, 1)).equal(between[i]));
  }
}

// So long that its matrices are packed (decoder.cpp).
TEST(Prefill, IsTheSameBitsWhoeverPacksTheMatrices) {
  constexpr int64_t kPrompt = 600;
  auto config = small_config("lsh,full");
  config.train.length = 2 * kPrompt;
  const LanguageModel model(config);
  const auto tokens = random_tokens(1, kPrompt + 1);
  const auto prompt = tokens.narrow(1, 0, kPrompt);
  PackedMatrices kept;
  std::vector<at::Tensor> logits;
  for (int i = 0; i < 3; ++i) {
    const PackedMatrices::Use use(i == 0 ? nullptr : &kept);
    Decoder decoder(model);
    logits.push_back(decoder.prefill(prompt, {kPrompt}));
  }
  EXPECT_TRUE(logits[0].equal(logits[1]));
  EXPECT_TRUE(logits[0].equal(logits[2]));
  const auto whole = whole_pass(model, tokens).select(1, kPrompt);
  EXPECT_LT(difference(logits[0], whole), 1e-3);
  Decoder short_one(model);
  const PackedMatrices::Use use(&kept);
  Decoder packed_short_one(model);
  EXPECT_TRUE(packed_short_one.prefill(prompt, {20})
                  .equal(short_one.prefill(prompt, {20})));
}

TEST(Prefill, SaysHowMuchIsDone) {
  const LanguageModel model(small_config("lsh,local,full"));
  const auto tokens = random_tokens(2, kLength);
  std::vector<double> shares;
  PrefillWatch watch;
  watch.progress = [&](double share) { shares.push_back(share); };
  Decoder decoder(model, 2);
  decoder.prefill(tokens, {40, 30}, nullptr, watch);
  EXPECT_GE(shares.size(), 2u * model.stack().blocks().size());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_GT(shares.front(), 0);
  EXPECT_DOUBLE_EQ(shares.back(), 1);
}

TEST(Prefill, EndsWhereItIsToldToAndNotBefore) {
  const LanguageModel model(small_config("lsh,local,full"));
  const auto tokens = random_tokens(1, kLength);
  std::atomic<bool> stop{false};
  double reached = 0;
  PrefillWatch watch{&stop, [&](double share) {
                       reached = share;
                       stop = share > 0.4;
                     }};
  Decoder decoder(model);
  EXPECT_THROW(decoder.prefill(tokens, {40}, nullptr, watch), Interrupted);
  EXPECT_GT(reached, 0.4);
  EXPECT_LT(reached, 0.6);
  interruption_point();  // nothing is left behind
}

}  // namespace
}  // namespace reformer
