#include "reformer/generate/beam_decoder.h"

#include <gtest/gtest.h>

#include "reformer/base/errors.h"
#include "tests/generate/beam_decoder_checks.h"

namespace reformer {
namespace {

TEST(BeamDecoder, StepByStepIsTheWholePass) {
  for (const char* block : {"reversible", "residual"}) {
    for (const char* attention :
         {"full", "lsh", "local", "full_shared_qk", "lsh,full,local"}) {
      for (const char* encoder : {"full", "lsh,local"}) {
        auto config = beam_config(attention, encoder);
        config.model.block = block;
        const EncoderDecoder model(config, at::kDouble);
        EXPECT_LT(largest_difference(model, 40), 1e-9)
            << block << " " << attention << " after " << encoder;
      }
    }
  }
}

TEST(BeamDecoder, WithRotaryPositionsAndSharedEmbeddings) {
  for (const char* attention : {"full", "lsh"}) {
    auto config = beam_config(attention, "full");
    config.model.positions = "rotary";
    config.model.share_embeddings = true;
    const EncoderDecoder model(config, at::kDouble);
    EXPECT_LT(largest_difference(model, 40), 1e-9) << attention;
  }
}

TEST(BeamDecoder, InFloat32ToRounding) {
  const EncoderDecoder model(beam_config("full", "full"));
  EXPECT_LT(largest_difference(model, 40), 2e-5);
}

// Of a vocabulary that takes several parts.
TEST(BeamDecoder, TheTopTokensAreThoseOfTheLogits) {
  for (const bool shared : {false, true}) {
    auto config = beam_config("full", "full");
    config.model.vocabulary = 2500;
    config.model.share_embeddings = shared;
    for (const auto type : {at::kDouble, at::kFloat}) {
      const EncoderDecoder model(config, type);
      const auto source = row_of({5, 9, 2300, 1});
      BeamDecoder of_logits(model, source, {4}, 2);
      BeamDecoder of_top(model, source, {4}, 2);
      BeamRows rows{{model.start_token()}, {0}, {0}};
      for (int64_t t = 0; t < 3; ++t) {
        const auto expected = top_tokens(of_logits.logits(rows), 5, 7);
        const auto found = of_top.top(rows, 5, 7);
        EXPECT_LT((found - expected).abs().max().item<double>(),
                  type == at::kDouble ? 1e-12 : 1e-4);
        rows = {{t, 2 * t + 1}, {0, 0}, {0, 0}};
      }
    }
  }
}

TEST(BeamDecoder, RefusesWhatCannotBe) {
  const EncoderDecoder model(beam_config("full", "full"));
  const auto source = row_of({5, 9, 1});
  EXPECT_THROW(BeamDecoder(model, source, {4}, 1), Error);
  EXPECT_THROW(BeamDecoder(model, source, {0}, 1), Error);
  EXPECT_THROW(BeamDecoder(model, source, {1, 1}, 1), Error);
  EXPECT_THROW(BeamDecoder(model, source.to(at::kInt), {3}, 1), Error);
  BeamDecoder decoder(model, source, {3}, 1);
  EXPECT_THROW(decoder.logits({}), Error);
  EXPECT_THROW(decoder.logits({{1, 2}, {0, 0}, {0, 0}}), Error);  // a beam of 1
}

}  // namespace
}  // namespace reformer
