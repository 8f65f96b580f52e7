// Long prompts: read in parts, watched, given up.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "reformer/base/interruption.h"
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
