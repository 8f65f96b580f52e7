#include "reformer/generate/decoding_memory.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "reformer/device/memory_meter.h"
#include "tests/generate/decoder_checks.h"

namespace reformer {
namespace {

using namespace decoding;

// Tensors of a decoder that has read so much, the last by a step, by which
// memory grows; lists of buckets are none.
int64_t measured(const LanguageModel& model, int64_t positions,
                 int64_t rounds) {
  const int64_t prompt = std::max<int64_t>(positions - 2, 0);
  const auto tokens = at::zeros({1, prompt}, at::kLong);
  Decoder decoder(model, 1, rounds);
  const MemoryMeter meter;
  decoder.prefill(tokens, {prompt});
  if (positions > 1) decoder.step(at::zeros({1}, at::kLong));
  return meter.in_use_bytes();
}

void expect_predicted(Config config, const std::string& attention) {
  config.model.attention = attention;
  config.model.positions = "sinusoid";
  const LanguageModel model(config);
  for (const int64_t positions : {1, 65, 1024, 1025, 2500}) {
    const int64_t predicted = decoding_memory(model, positions);
    const int64_t taken = measured(model, positions, 0);
    EXPECT_GE(predicted + 1000, taken) << attention << " " << positions;
    EXPECT_LE(predicted, taken * 11 / 10) << attention << " " << positions;
  }
}

TEST(DecodingMemory, IsWhatADecoderTakes) {
  for (const char* attention : {"lsh", "full", "local", "lsh,local,full"}) {
    expect_predicted(small_config(attention), attention);
  }
}

TEST(DecodingMemory, IsThatOfHuggingfacesLayersToo) {
  for (const char* attention : {"lsh_huggingface", "local_separate_qk",
                                "local_separate_qk,lsh_huggingface"}) {
    auto config = small_config(attention);
    if (config.model.attention.contains(AttentionKind::kLshHuggingface)) {
      config.model.bucket_factors = {2, 4};
    }
    config.model.d_head = 64;  // beside which lists of buckets are small
    config.lsh.local_window = 0;
    expect_predicted(config, attention);
  }
}

TEST(DecodingMemory, ChunksOfLocalAttentionMayHaveALengthOfTheirOwn) {
  auto config = small_config("local");
  config.model.local_chunk_length = 700;  // two of them need two pages
  expect_predicted(config, "local");
  config.model.local_chunk_length = 7;
  config.lsh.chunk_length = 700;
  expect_predicted(config, "local");
}

TEST(DecodingMemory, HeadsThatDoNotHashTakeLess) {
  auto config = small_config("lsh");
  config.model.positions = "sinusoid";
  config.lsh.local_window = 4;
  config.model.successor_fraction = 0.5;
  const LanguageModel all(config);
  config.lsh.hashed_heads = "successor";
  const LanguageModel half(config);
  EXPECT_LT(decoding_memory(half, 2500), decoding_memory(all, 2500) * 3 / 4);
  EXPECT_NEAR(double(decoding_memory(half, 2500)),
              double(measured(half, 2500, 0)),
              double(measured(half, 2500, 0)) / 10);
}

TEST(DecodingMemory, MoreRoundsTakeMore) {
  const LanguageModel model(small_config("lsh"));
  EXPECT_GT(decoding_memory(model, 70, 8), decoding_memory(model, 70, 2));
  EXPECT_EQ(decoding_memory(model, 70, 2), decoding_memory(model, 70));
}

}  // namespace
}  // namespace reformer
