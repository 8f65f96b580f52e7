// The checks of tests/generate/beam_decoder_test.cpp, on a GPU.
#include "reformer/generate/beam_decoder.h"

#include <gtest/gtest.h>

#include "reformer/generate/translator.h"
#include "tests/generate/beam_decoder_checks.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);

TEST(CudaBeamDecoder, StepByStepIsTheWholePass) {
  for (const char* block : {"reversible", "residual"}) {
    for (const char* attention : {"full", "local", "full_shared_qk"}) {
      auto config = beam_config(attention, "full");
      config.model.block = block;
      const EncoderDecoder model(config, Placement(kGpu, at::kFloat));
      EXPECT_LT(largest_difference(model, 40), 1e-4) << block << attention;
    }
  }
}

TEST(CudaBeamDecoder, InBfloat16ToItsRounding) {
  const EncoderDecoder model(beam_config("full", "full"),
                             Placement(kGpu, at::kBFloat16));
  EXPECT_LT(largest_difference(model, 40), 0.1);
}

TEST(CudaBeamDecoder, TheTopTokensAreThoseOfTheLogits) {
  auto config = beam_config("full", "full");
  config.model.vocabulary = 2500;
  const EncoderDecoder model(config, Placement(kGpu, at::kFloat));
  const auto source = row_of({5, 9, 2300, 1});
  BeamDecoder of_logits(model, source, {4}, 2);
  BeamDecoder of_top(model, source, {4}, 2);
  BeamRows rows{{model.start_token()}, {0}, {0}};
  for (int64_t t = 0; t < 3; ++t) {
    const auto expected = top_tokens(of_logits.logits(rows), 5, 7);
    const auto found = of_top.top(rows, 5, 7);
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-4);
    rows = {{t, 2 * t + 1}, {0, 0}, {0, 0}};
  }
}

TEST(CudaBeamDecoder, TranslatesAsTheCpuDoes) {
  const auto config = beam_config("full", "full");
  const EncoderDecoder on_cpu(config);
  const EncoderDecoder on_gpu(config, Placement(kGpu, at::kFloat));
  TranslatorConfig settings;
  settings.end_token = 2;
  settings.batch = 3;
  const std::vector<std::vector<int64_t>> sources = {
      {1, 3, 5}, {}, {4, 0, 1, 9, 9}, {0}, {7, 7}};
  const auto expected = Translator(on_cpu, settings).translate(sources).best;
  const auto found = Translator(on_gpu, settings).translate(sources).best;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(found[i][0].tokens, expected[i][0].tokens) << i;
    EXPECT_NEAR(found[i][0].score, expected[i][0].score, 1e-4);
  }
}

}  // namespace
}  // namespace reformer
