// The memory that is predicted before a run is what is measured in it.

#include <gtest/gtest.h>

#include "reformer/config/config_json.h"
#include "reformer/device/memory_meter.h"
#include "reformer/model/prediction.h"
#include "reformer/optim/optimizer.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

struct Case {
  std::string name;
  Config config;
};

template <class Change>
Case case_of(const std::string& name, const Change& change) {
  Case made{name, medium_config()};
  change(made.config);
  return made;
}

void of_translation(Config& c) {
  c.task.name = "none";
  c.model.encoder_layers = 2;
  c.model.attention = "full";
  c.model.positions = "sinusoid";
}

std::vector<Case> cases() {
  return {
      case_of("lsh", [](Config&) {}),
      case_of("local", [](Config& c) { c.model.attention = "local"; }),
      case_of("full", [](Config& c) { c.model.attention = "full"; }),
      case_of("full_shared_qk",
              [](Config& c) { c.model.attention = "full_shared_qk"; }),
      case_of("mixed", [](Config& c) { c.model.attention = "full,lsh"; }),
      case_of("many_rounds",
              [](Config& c) {
                c.lsh.rounds = 16;
                c.model.dropout = 0;
              }),
      case_of("many_bucket_ids",
              [](Config& c) {
                c.model.layers = 24;
                c.model.d_model = 32;
                c.model.d_ff = 32;
                c.model.heads = 4;
                c.model.d_head = 8;
                c.lsh.rounds = 16;
                c.train.batch = 1;
              }),
      case_of("deep", [](Config& c) { c.model.layers = 12; }),
      case_of("narrow_heads", [](Config& c) { c.model.d_head = 8; }),
      case_of("wide_heads", [](Config& c) { c.model.d_head = 64; }),
      case_of("whole_feed_forward",
              [](Config& c) {
                c.model.d_ff = 1024;
                c.model.feed_forward_chunk = 0;
              }),
      case_of("whole_feed_forward_relu",
              [](Config& c) {
                c.model.d_ff = 1024;
                c.model.feed_forward_chunk = 0;
                c.model.activation = "relu";
              }),
      case_of("whole_feed_forward_relu_squared",
              [](Config& c) {
                c.model.d_ff = 1024;
                c.model.feed_forward_chunk = 0;
                c.model.activation = "relu_squared";
              }),
      case_of("whole_loss",
              [](Config& c) {
                c.model.vocabulary = 1000;
                c.model.loss_chunk = 0;
              }),
      case_of("many_parameters",
              [](Config& c) {
                c.model.d_model = 512;
                c.model.d_ff = 2048;
                c.train.batch = 1;
                c.train.length = 66;
              }),
      case_of("long_and_narrow",
              [](Config& c) {
                c.model.layers = 1;
                c.model.d_model = 256;
                c.model.d_ff = 64;
                c.model.heads = 1;
                c.model.d_head = 8;
                c.model.positions = "axial";
                c.model.axial_shape = {256, 128};
                c.model.axial_dims = {128, 128};
                c.lsh.rounds = 1;
                c.train.batch = 1;
                c.train.length = 32768;
              }),
      case_of("muon", [](Config& c) { c.train.optimizer = "muon"; }),
      case_of("many_parameters_muon",
              [](Config& c) {
                c.model.d_model = 512;
                c.model.d_ff = 2048;
                c.train.batch = 1;
                c.train.length = 66;
                c.train.optimizer = "muon";
              }),
      case_of("large_vocabulary",
              [](Config& c) {
                c.model.vocabulary = 20000;
                c.train.batch = 1;
                c.train.length = 256;
                c.train.optimizer = "adafactor";
              }),
      case_of("accumulated", [](Config& c) { c.train.accumulate = 2; }),
      case_of("stored", [](Config& c) { c.model.block = "stored"; }),
      case_of("stored_without_dropout",
              [](Config& c) {
                c.model.block = "stored";
                c.model.dropout = 0;
              }),
      case_of("stored_deep_relu",
              [](Config& c) {
                c.model.block = "stored";
                c.model.activation = "relu";
                c.model.layers = 6;
                c.train.length = 512;
              }),
      case_of("residual", [](Config& c) { c.model.block = "residual"; }),
      case_of("rotary", [](Config& c) { c.model.positions = "rotary"; }),
      case_of("ngrams",
              [](Config& c) {
                c.model.ngram_length = 4;
                c.model.ngram_rows = 5000;
                c.train.optimizer = "adamw";
              }),
      case_of("ngrams_adafactor",
              [](Config& c) {
                c.model.ngram_length = 3;
                c.model.ngram_rows = 20000;
                c.train.optimizer = "adafactor";
              }),
      case_of("ngram_rounds",
              [](Config& c) {
                c.lsh.ngrams = {2, 4, 8};
              }),
      case_of("convolved",
              [](Config& c) {
                c.model.positions = "rotary";
                c.model.short_convolution = 4;
              }),
      case_of("stored_convolved",
              [](Config& c) {
                c.model.block = "stored";
                c.model.short_convolution = 2;
              }),
      case_of("near_heads",
              [](Config& c) {
                c.model.positions = "rotary";
                c.model.successor_fraction = 0.5;
                c.lsh.local_window = 16;
                c.lsh.hashed_heads = HashedHeads::kSuccessor;
              }),
      case_of("stored_near_heads",
              [](Config& c) {
                c.model.positions = "rotary";
                c.model.successor_fraction = 0.5;
                c.model.block = "stored";
                c.lsh.local_window = 16;
                c.lsh.hashed_heads = HashedHeads::kSuccessor;
                c.lsh.local_heads = LocalHeads::kOther;
              }),
      case_of("translation", of_translation),
      case_of("translation_stored",
              [](Config& c) {
                of_translation(c);
                c.model.block = "stored";
              }),
      case_of("translation_residual_without_dropout",
              [](Config& c) {
                of_translation(c);
                c.model.block = "residual";
                c.model.dropout = 0;
              }),
      case_of("translation_deep_lsh",
              [](Config& c) {
                of_translation(c);
                c.model.layers = c.model.encoder_layers = 6;
                c.model.attention = "lsh";
                c.model.encoder_attention = "lsh";
              }),
      case_of("translation_deep_encoder",
              [](Config& c) {
                of_translation(c);
                c.model.encoder_layers = 12;
                c.model.positions = "learned";
              }),
      case_of("translation_vocabulary",
              [](Config& c) {
                of_translation(c);
                c.model.vocabulary = 2000;
                c.model.loss_chunk = 0;
              }),
      case_of("translation_shared",
              [](Config& c) {
                of_translation(c);
                c.model.vocabulary = 20000;
                c.model.share_embeddings = true;
                c.train.length = 64;
                c.train.optimizer = "adafactor";
              }),
      case_of("translation_many_parameters",
              [](Config& c) {
                of_translation(c);
                c.model.d_model = 512;
                c.model.d_ff = 2048;
                c.train.length = 33;
              }),
      case_of("stored_rotary",
              [](Config& c) {
                c.model.positions = "rotary";
                c.model.successor_fraction = 0.5;
                c.model.block = "stored";
              }),
  };
}

class Prediction : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Configs, Prediction, testing::ValuesIn(cases()),
                         [](const auto& instance) {
                           return instance.param.name;
                         });

// Of a step, with everything that a training run holds.
int64_t measured_peak(const Config& config) {
  const MemoryMeter meter;
  const auto tokens = random_tokens(config, 1);
  Batch batch{tokens, all_of(tokens)};
  if (config.model.encoder_layers > 0) {
    batch.source = random_tokens(config, 2);
    batch.source_mask = all_of(tokens);
    batch.source_mask[0][config.train.length - 1] = false;
  }
  const auto model = make_model(config);
  const auto optimizer = make_optimizer(config.train, model->parameters());
  const auto step = [&] {
    model->zero_gradients();
    for (int64_t i = 0; i < config.train.accumulate; ++i) {
      model->add_gradients(batch, training_pass(), 1e-3);
    }
    clip_gradients(model->parameters(), 1);
    optimizer->step(model->parameters(), 1e-3);
  };
  step();
  return meter.peak_bytes();
}

TEST_P(Prediction, OfMemoryIsWithin5PercentOfTheMeasured) {
  const OneThread one_thread;
  const auto predicted = predict_memory(GetParam().config);
  const double total = double(predicted.peak.total());
  const double measured = double(measured_peak(GetParam().config));
  RecordProperty("measured_bytes", std::to_string(measured));
  RecordProperty("predicted_bytes", std::to_string(total));
  EXPECT_NEAR(total / measured, 1, 0.05) << predicted.peak.part;
}

TEST_P(Prediction, OfParametersIsExact) {
  const auto model = make_model(GetParam().config);
  const auto predicted = count_parameters(GetParam().config);
  ParameterCounts counts;
  for (const auto& parameter : model->parameters()) {
    const auto has = [&](const char* part) {
      return parameter.name.find(part) != std::string::npos;
    };
    int64_t& count = has("embedding.")      ? counts.embedding
                     : has("ngrams.")       ? counts.ngrams
                     : has("positions.")    ? counts.positions
                     : has("attention.")    ? counts.attention
                     : has("feed_forward.") ? counts.feed_forward
                                            : counts.head;
    count += parameter.value.numel();
  }
  EXPECT_EQ(counts.embedding, predicted.embedding);
  EXPECT_EQ(counts.ngrams, predicted.ngrams);
  EXPECT_EQ(counts.positions, predicted.positions);
  EXPECT_EQ(counts.attention, predicted.attention);
  EXPECT_EQ(counts.feed_forward, predicted.feed_forward);
  EXPECT_EQ(counts.head, predicted.head);
}

// Settings that check() lets pass, as large as it does.
TEST(PredictionOfExtremes, NeverOverflows) {
  const std::vector<std::vector<std::string>> extremes = {
      {"model.layers=4096", "model.d_model=131072", "model.heads=512"},
      {"model.d_model=2097152", "model.d_head=256", "model.d_ff=2147483647"},
      {"model.vocabulary=2147483647", "train.length=65536"},
      {"train.batch=1048576", "train.length=1048576"},
      {"train.length=2147483647", "lsh.rounds=2048"},
      {"model.layers=4096", "model.block=stored", "train.length=1048576"},
      {"model.positions=axial", "model.axial_dims=128,128,256",
       "model.axial_shape=2147483647,2147483647,2147483647"}};
  for (const char* optimizer : {"adafactor", "adamw", "muon"}) {
    for (const auto& assignments : extremes) {
      Config config;
      config.train.optimizer = optimizer;
      for (const auto& each : assignments) set_config_value(config, each);
      ASSERT_NO_THROW(check(config)) << assignments[0];
      for (const auto device : {at::kCPU, at::kCUDA}) {
        const auto memory = predict_memory(config, device);
        for (const int64_t bytes :
             {memory.peak.parameters, memory.peak.gradients,
              memory.peak.optimizer_state, memory.peak.streams,
              memory.peak.activations, memory.peak.bucket_ids,
              memory.peak.total(), memory.attention, memory.feed_forward,
              memory.loss, longest_input(config), tokens_per_step(config)}) {
          EXPECT_GE(bytes, 0) << assignments[0];
        }
        EXPECT_GT(memory.peak.total(), memory.peak.parameters);
      }
      EXPECT_GT(count_parameters(config).total(), 0);
    }
  }
}

// Its time was that of their square.
TEST(PredictionOfExtremes, TakesAMillionLayers) {
  Config config;
  config.model.layers = 1 << 20;
  EXPECT_GT(predict_memory(config).peak.total(), int64_t{1} << 44);
}

}  // namespace
}  // namespace reformer
