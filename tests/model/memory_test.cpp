// What grows with what: peak memory, counted by the allocator.
#include <gtest/gtest.h>

#include "reformer/device/memory_meter.h"
#include "reformer/model/reversible_stack.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

constexpr int64_t kLength = 4096;

Config long_config() {
  Config config = small_config_of("lsh");
  config.model.layers = 1;
  config.model.d_model = 64;
  config.model.d_ff = 64;
  config.model.heads = 1;
  config.model.d_head = 64;
  config.model.feed_forward_chunk = 0;
  config.model.loss_chunk = 0;
  config.lsh.chunk_length = 32;
  config.lsh.n_buckets = 0;
  config.train.batch = 1;
  config.train.length = kLength;
  return config;
}

// Of a step beyond the parameters and their gradients, which a first step has
// left in place.
int64_t working_bytes(LanguageModel& model, const at::Tensor& tokens) {
  const auto step = [&] {
    model.train(tokens, all_of(tokens), training_pass(), 1);
  };
  step();
  const MemoryMeter meter;
  step();
  return meter.peak_bytes();
}

int64_t working_bytes(const Config& config) {
  const OneThread one_thread;
  LanguageModel model(config);
  return working_bytes(model, random_tokens(config, 1));
}

int64_t bucket_bytes(const Config& config) {
  return 2 * config.model.layers * config.train.batch * config.train.length *
         config.model.heads * config.lsh.rounds;
}

TEST(Memory, DoesNotGrowWithLayersButForBucketIds) {
  auto config = long_config();
  config.train.length = 1024;
  config.model.layers = 3;
  const int64_t shallow = working_bytes(config) - bucket_bytes(config);
  config.model.layers = 24;
  const int64_t deep = working_bytes(config) - bucket_bytes(config);
  EXPECT_LE(double(deep), 1.02 * double(shallow));
}

TEST(Memory, OfStoredActivationsGrowsWithLayers) {
  auto config = long_config();
  config.train.length = 1024;
  config.model.block = "stored";
  config.model.layers = 3;
  const int64_t shallow = working_bytes(config);
  config.model.layers = 24;
  EXPECT_GE(working_bytes(config), 4 * shallow);
}

TEST(Memory, DoesNotGrowWithTheFeedForwardsWidth) {
  auto config = long_config();
  config.model.d_ff = 1024;
  const int64_t narrow = working_bytes(config);
  config.model.d_ff *= 8;
  EXPECT_LE(double(working_bytes(config)), 1.1 * double(narrow));
}

TEST(Memory, DoesNotGrowWithTheVocabulary) {
  auto config = long_config();
  config.model.vocabulary = 1024;
  const int64_t small = working_bytes(config);
  config.model.vocabulary *= 8;
  EXPECT_LE(double(working_bytes(config)), 1.1 * double(small));
}

class Attentions : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Memory, Attentions,
                         testing::Values("lsh", "local", "full",
                                         "full_shared_qk"),
                         [](const auto& instance) { return instance.param; });

TEST_P(Attentions, NeverHoldAMatrixOfLengthByLength) {
  auto config = long_config();
  config.model.attention = GetParam();
  config.model.d_model = 32;
  config.model.d_head = 32;
  config.model.feed_forward_chunk = 64;
  config.model.loss_chunk = 64;
  EXPECT_LT(working_bytes(config), kLength * kLength);  // a byte each
}

}  // namespace
}  // namespace reformer
