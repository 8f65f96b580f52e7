#include "reformer/config/config.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "reformer/config/config_json.h"
#include "tests/config/config_support.h"

namespace reformer {
namespace {

// What each part of the check says about a config that is fine but for this.
std::string check_error_of(const std::vector<std::string>& assignments) {
  return error_of([&] {
    Config config;
    for (const auto& assignment : assignments) {
      set_config_value(config, assignment);
    }
    check(config);
  });
}

TEST(CheckConfig, TheDefaultsArePossible) { EXPECT_NO_THROW(check(Config())); }

TEST(CheckConfig, SizesAndCountsHaveRanges) {
  for (const char* key :
       {"model.d_model", "model.d_ff", "model.heads", "lsh.rounds",
        "lsh.chunk_length", "train.steps", "train.batch", "train.length",
        "train.accumulate", "train.keep", "train.log_every"}) {
    EXPECT_EQ(check_error_of({std::string(key) + "=0"}),
              std::string(key) +
                  ": a whole number from 1 to 2147483647 is required, got 0");
  }
  for (const char* key :
       {"model.feed_forward_chunk", "model.loss_chunk", "lsh.local_window",
        "train.seed", "train.warmup", "train.evaluate_every",
        "train.evaluate_batches", "train.checkpoint_every"}) {
    expect_contains(check_error_of({std::string(key) + "=-1"}),
                    std::string(key) + ": a whole number from 0 to ");
  }
  expect_contains(check_error_of({"train.length=2147483648"}),
                  "train.length: a whole number from 1 to 2147483647");
  EXPECT_EQ(check_error_of({"train.seed=9223372036854775807"}), "no error");
}

TEST(CheckConfig, RanksThatShareSequencesHaveHeadsAndPositionsEach) {
  EXPECT_EQ(check_error_of({"model.heads=4", "train.sequence_parallel=4",
                            "train.length=64"}),
            "no error");
  EXPECT_EQ(
      check_error_of({"model.heads=4", "train.sequence_parallel=5"}),
      "train.sequence_parallel: a whole number from 1 to 4 is required, got "
      "5");
  EXPECT_EQ(check_error_of({"train.length=64", "train.sequence_parallel=3"}),
            "train.sequence_parallel: a divisor of train.length = 64 is "
            "required, got 3");
  expect_contains(
      check_error_of({"train.sequence_parallel=2", "train.sample_length=5"}),
      "train.sample_length: 0 is required");
  expect_contains(
      check_error_of({"train.sequence_parallel=2", "train.cuda_graph=on"}),
      "train.cuda_graph: auto or off is required");
  expect_contains(check_error_of({"distributed.timeout=0.5"}),
                  "distributed.timeout: from 1 to 86400 seconds");
  expect_contains(check_error_of({"distributed.backend=mpi"}),
                  "one of auto, gloo, nccl");
}

// Beyond what can be counted, or what any machine has.
TEST(CheckConfig, SizesThatAreTooLargeTogetherAreErrors) {
  EXPECT_EQ(check_error_of({"model.layers=2147483647"}),
            "model.layers: a whole number from 1 to 1048576 is required, got "
            "2147483647");
  expect_contains(
      check_error_of({"model.layers=1048576", "model.d_ff=2147483647"}),
      "model: fewer parameters are required");
  expect_contains(check_error_of({"model.d_model=2147483640",
                                  "model.d_ff=2147483647", "model.d_head=8"}),
                  "model: fewer parameters are required");
  expect_contains(
      check_error_of({"train.batch=2147483647", "train.length=2147483647"}),
      "train.batch: fewer sequences, or shorter ones, are required than "
      "2147483647 of train.length = 2147483647");
  expect_contains(check_error_of({"train.batch=1000000", "train.length=1000000",
                                  "train.accumulate=2147483647"}),
                  "train.batch: fewer sequences");
  // The largest that people train, ten times over.
  EXPECT_EQ(
      check_error_of({"model.layers=1000", "model.d_model=65536",
                      "model.heads=512", "model.d_ff=262144",
                      "model.vocabulary=1000000", "train.length=10000000"}),
      "no error");
}

TEST(CheckConfig, RatesHaveRanges) {
  for (const char* key : {"model.dropout", "train.beta1", "train.beta2",
                          "train.momentum", "train.label_smoothing"}) {
    for (const char* value : {"=-0.1", "=1", "=1.5"}) {
      expect_contains(check_error_of({std::string(key) + value}),
                      std::string(key) + ": at least 0 and less than 1");
    }
  }
  for (const char* key : {"train.learning_rate", "train.epsilon"}) {
    expect_contains(check_error_of({std::string(key) + "=0"}),
                    std::string(key) + ": a number above 0 is required, got 0");
  }
  for (const char* key :
       {"train.weight_decay", "train.clip", "train.minutes"}) {
    expect_contains(check_error_of({std::string(key) + "=-1"}),
                    std::string(key) + ": a number of at least 0");
  }
}

TEST(CheckConfig, RatesAreFinite) {
  for (const double bad : {std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    for (double TrainConfig::*rate :
         {&TrainConfig::learning_rate, &TrainConfig::epsilon,
          &TrainConfig::weight_decay, &TrainConfig::beta1, &TrainConfig::beta2,
          &TrainConfig::momentum, &TrainConfig::clip, &TrainConfig::minutes,
          &TrainConfig::label_smoothing}) {
      Config config;
      config.train.*rate = bad;
      EXPECT_THROW(check(config), Error);
    }
    Config config;
    config.model.dropout = bad;
    EXPECT_THROW(check(config), Error);
  }
}

TEST(CheckConfig, SuccessorHeadsAreSomeAndLeaveSomeToTurn) {
  for (const char* value : {"=-0.1", "=1.5"}) {
    expect_contains(
        check_error_of({std::string("model.successor_fraction") + value}),
        "model.successor_fraction: from 0 to 1 is required");
  }
  expect_contains(
      check_error_of({"model.heads=4", "model.successor_fraction=0.1"}),
      "0.1 of 4 heads is none; at least 0.25");
  expect_contains(
      check_error_of({"model.positions=rotary", "model.successor_fraction=1"}),
      "leaves no head that rotary positions could turn");
  Config config;
  config.model.successor_fraction = 1;
  EXPECT_NO_THROW(check(config));
  EXPECT_EQ(successor_heads(config.model), config.model.heads);
}

TEST(CheckConfig, AnEncoderIsForTranslationAlone) {
  const std::string toy = "task.name=translation-toy";
  EXPECT_EQ(check_error_of({toy, "model.encoder_layers=2"}), "no error");
  EXPECT_EQ(check_error_of({"task.name=none", "model.encoder_layers=2"}),
            "no error");
  expect_contains(check_error_of({toy}),
                  "model.encoder_layers: at least 1 is required by "
                  "translation-toy");
  expect_contains(check_error_of({"model.encoder_layers=2"}),
                  "model.encoder_layers: 0 is required by text");
  expect_contains(check_error_of({"model.encoder_layers=-1"}),
                  "model.encoder_layers: a whole number from 0");
  expect_contains(check_error_of({toy, "model.encoder_layers=1",
                                  "model.encoder_attention=full,lsh"}),
                  "model.encoder_attention: at most model.encoder_layers = 1");
  expect_contains(check_error_of({"model.share_embeddings=true"}),
                  "model.share_embeddings: false is required");
}

TEST(CheckConfig, HeadsThatDoNotHashSeeTheirNeighbours) {
  const auto error = [](const char* more) {
    return check_error_of({"model.heads=4", "model.successor_fraction=0.5",
                           "lsh.local_window=8", "lsh.hashed_heads=successor",
                           more});
  };
  expect_contains(error("lsh.local_window=0"), "lsh.hashed_heads: successor");
  expect_contains(error("model.successor_fraction=0"),
                  "lsh.hashed_heads: successor");
  expect_contains(error("model.successor_fraction=1"),
                  "lsh.hashed_heads: successor");
  expect_contains(check_error_of({"lsh.local_heads=other"}),
                  "lsh.local_heads: other takes lsh.hashed_heads = successor");
  Config config;
  EXPECT_EQ(hashed_heads(config), config.model.heads);
  config.model.successor_fraction = 0.5;
  config.lsh.local_window = 8;
  config.lsh.hashed_heads = HashedHeads::kSuccessor;
  EXPECT_NO_THROW(check(config));
  EXPECT_EQ(hashed_heads(config), config.model.heads / 2);
  EXPECT_EQ(local_window_of_hashed(config), 8);
  config.lsh.local_heads = LocalHeads::kOther;
  EXPECT_NO_THROW(check(config));
  EXPECT_EQ(local_window_of_hashed(config), 0);
}

TEST(CheckConfig, NgramsAreOfTwoToEightTokens) {
  for (const char* value : {"=-1", "=1", "=9"}) {
    expect_contains(check_error_of({std::string("model.ngram_length") + value}),
                    "model.ngram_length: 0, or from 2 to 8 is required");
  }
  expect_contains(check_error_of({"model.ngram_rows=0"}), "model.ngram_rows: ");
  Config config;
  EXPECT_EQ(ngram_tables(config.model), 0);
  config.model.ngram_length = 5;
  EXPECT_NO_THROW(check(config));
  EXPECT_EQ(ngram_tables(config.model), 4);
}

TEST(CheckConfig, ShortConvolutionsAreOfTwoToFivePositions) {
  for (const char* value : {"=-1", "=1", "=6"}) {
    expect_contains(
        check_error_of({std::string("model.short_convolution") + value}),
        "model.short_convolution: 0, or from 2 to 5 is required");
  }
  expect_contains(
      check_error_of({"model.short_convolution=4", "model.encoder_layers=1",
                      "task.name=translation-toy", "task.alphabet=20"}),
      "model.short_convolution: 0 is required where model.encoder_layers");
  expect_contains(check_error_of({"model.short_convolution=4",
                                  "model.attention=local_separate_qk"}),
                  "model.short_convolution: 0 is required by "
                  "local_separate_qk attention");
  Config config;
  EXPECT_EQ(convolution_taps(config.model), 0);
  config.model.short_convolution = 5;
  EXPECT_NO_THROW(check(config));
  EXPECT_EQ(convolution_taps(config.model), 4);
}

TEST(CheckConfig, RoundsOfNgramsAreOfTwoToEightInputs) {
  for (const char* value : {"=1", "=4,9", "=-2"}) {
    expect_contains(check_error_of({std::string("lsh.ngrams") + value}),
                    "lsh.ngrams: ");
  }
  expect_contains(
      check_error_of({"lsh.ngrams=4", "model.encoder_layers=1",
                      "task.name=translation-toy", "task.alphabet=20"}),
      "lsh.ngrams: none are possible where model.encoder_layers");
  Config config;
  config.lsh.ngrams = {3, 8};
  EXPECT_NO_THROW(check(config));
  EXPECT_EQ(bucket_rounds(config.lsh), config.lsh.rounds + 2);
}

TEST(CheckConfig, GroupsOfRoundsAreOfLanguageModelsWithoutRoundsOfNgrams) {
  expect_contains(check_error_of({"lsh.more_rounds=groups", "lsh.ngrams=4"}),
                  "lsh.more_rounds: union is required");
  expect_contains(
      check_error_of({"lsh.more_rounds=groups", "model.encoder_layers=1",
                      "task.name=translation-toy", "task.alphabet=20"}),
      "lsh.more_rounds: union is required");
  LshConfig lsh;
  lsh.rounds = 3;
  EXPECT_EQ(rounds_together(lsh, 8), 8);
  lsh.more_rounds = MoreRounds::kGroups;
  EXPECT_EQ(rounds_together(lsh, 8), 3);
  EXPECT_EQ(rounds_together(lsh, 2), 2);
}

TEST(CheckConfig, NamesAreAmongTheKnownOnes) {
  EXPECT_EQ(check_error_of({"model.attention=lsh,lhs"}),
            "model.attention: one of full, full_shared_qk, local, lsh, "
            "local_separate_qk, lsh_huggingface is required, got 'lhs'");
  for (const char* key :
       {"task.name", "model.attention", "model.encoder_attention",
        "model.block", "model.activation", "model.positions", "train.optimizer",
        "train.schedule"}) {
    const auto error = check_error_of({std::string(key) + "=x"});
    expect_contains(error, std::string(key) + ": one of ");
    expect_contains(error, "is required, got 'x'");
  }
}

TEST(CheckConfig, BucketsAreACountThatAHashCanHave) {
  EXPECT_EQ(check_error_of({"lsh.n_buckets=0"}), "no error");
  EXPECT_EQ(check_error_of({"lsh.n_buckets=32"}), "no error");
  expect_contains(check_error_of({"lsh.n_buckets=33"}), "the nearest is 32");
}

TEST(CheckConfig, BucketsOfHuggingfaceHaveEvenFactors) {
  const std::string theirs = "model.attention=lsh_huggingface";
  EXPECT_EQ(check_error_of({theirs, "model.bucket_factors=64,128"}),
            "no error");
  expect_contains(check_error_of({theirs}), "model.bucket_factors: required");
  expect_contains(check_error_of({theirs, "model.bucket_factors=64,3"}),
                  "even numbers from 2 to 65536 are required, got 3");
  expect_contains(check_error_of({theirs, "model.bucket_factors=512,512"}),
                  "a product of at most 65536");
  expect_contains(check_error_of({"model.bucket_factors=64"}),
                  "none are required where");
  expect_contains(
      check_error_of({theirs, "model.bucket_factors=8", "lsh.local_window=4"}),
      "lsh_huggingface has neither");
  expect_contains(
      check_error_of({"model.attention=local_separate_qk",
                      "model.encoder_layers=1", "task.name=translation-toy"}),
      "local_separate_qk is of language models alone");
}

TEST(CheckConfig, BytesBehindOtherTokensFitTheVocabulary) {
  expect_contains(check_error_of({"task.byte_offset=2"}),
                  "model.vocabulary: at least 258");
  EXPECT_EQ(check_error_of({"task.byte_offset=2", "model.vocabulary=258"}),
            "no error");
  expect_contains(check_error_of({"task.byte_offset=-1"}), "task.byte_offset");
  expect_contains(check_error_of({"model.norm_epsilon=0"}),
                  "model.norm_epsilon");
}

TEST(CheckConfig, TextAloneHasRepeats) {
  EXPECT_EQ(check_error_of({"task.repeats=0.5"}), "no error");
  expect_contains(check_error_of({"task.repeats=1"}),
                  "task.repeats: at least 0 and less than 1 is required");
  expect_contains(check_error_of({"task.repeats=-0.1"}), "task.repeats");
  expect_contains(check_error_of({"task.name=images", "task.repeats=0.1",
                                  "task.image_size=4", "train.length=48"}),
                  "task.repeats: of text; 0 is required by images, got 0.1");
}

TEST(CheckConfig, HeadsDivideTheModelUnlessTheirSizeIsGiven) {
  expect_contains(check_error_of({"model.heads=7"}),
                  "model.heads: a divisor of model.d_model = 512");
  EXPECT_EQ(check_error_of({"model.heads=7", "model.d_head=64"}), "no error");
  expect_contains(check_error_of({"model.heads=128"}), "512 / 128 = 4");
  expect_contains(check_error_of({"model.heads=1"}), "512 / 1 = 512");
  for (const char* size : {"7", "257", "-8"}) {
    expect_contains(check_error_of({std::string("model.d_head=") + size}),
                    "model.d_head: a whole number from 8 to 256 is required");
  }
}

TEST(CheckConfig, AxialPositionsFitTheModelAndTheLength) {
  const auto axial = [](const std::string& shape, const std::string& dims) {
    return check_error_of({"model.positions=axial", "train.length=4096",
                           "model.axial_shape=" + shape,
                           "model.axial_dims=" + dims});
  };
  EXPECT_EQ(axial("64,64", "128,384"), "no error");
  EXPECT_EQ(axial("65536,65536,65536,65536", "1,1,1,509"), "no error");
  expect_contains(axial("", ""), "model.axial_shape: the axes' lengths");
  expect_contains(axial("64,64", "512"), "model.axial_dims: as many axes");
  expect_contains(axial("64,64", "128,128"), "model.d_model = 512 is required");
  expect_contains(axial("64,63", "128,384"),
                  "at least train.length = 4096 is required, got 4032");
  expect_contains(axial("0,4096", "128,384"),
                  "model.axial_shape: a whole number");
  expect_contains(axial("1,4096", "0,512"), "model.axial_dims: a whole number");
}

TEST(CheckConfig, TheTaskFitsTheModel) {
  expect_contains(check_error_of({"model.vocabulary=255"}),
                  "model.vocabulary: at least 256");
  const std::string duplication = "task.name=duplication";
  EXPECT_EQ(check_error_of({duplication, "model.vocabulary=128"}), "no error");
  expect_contains(check_error_of({duplication, "model.vocabulary=127"}),
                  "task.alphabet + 1 = 128 is required, got 127");
  expect_contains(check_error_of({duplication, "task.alphabet=0"}),
                  "task.alphabet: a whole number from 1");
  for (const char* length : {"train.length=2", "train.length=65"}) {
    expect_contains(check_error_of({duplication, length}),
                    "train.length: an even number of at least 4");
  }
  EXPECT_EQ(check_error_of({duplication, "train.length=4"}), "no error");
}

TEST(CheckConfig, WithoutATaskAnyVocabularyIsPossible) {
  const std::string none = "task.name=none";
  EXPECT_EQ(check_error_of({none, "model.vocabulary=16"}), "no error");
  expect_contains(check_error_of({none, "model.vocabulary=1"}),
                  "model.vocabulary: a whole number from 2");
}

TEST(CheckConfig, RecallHasAsManyKeysAsPairs) {
  const auto error = [](std::vector<std::string> settings) {
    settings.insert(settings.begin(),
                    {"task.name=recall", "task.alphabet=100",
                     "model.vocabulary=200", "train.length=1000"});
    return check_error_of(settings);
  };
  EXPECT_EQ(error({}), "no error");
  expect_contains(error({"model.vocabulary=199"}),
                  "model.vocabulary: at least 2 task.alphabet = 200");
  expect_contains(error({"task.alphabet=1"}),
                  "task.alphabet: a whole number from 2");
  expect_contains(error({"task.key_length=0"}),
                  "task.key_length: a whole number from 1 to 64");
  EXPECT_EQ(error({"train.length=6"}), "no error");
  expect_contains(error({"train.length=5"}),
                  "train.length: at least 6, two keys with their values");
  // 75000 tokens are 25000 slots, 10000 of which are pairs.
  EXPECT_EQ(error({"train.length=75000"}), "no error");
  EXPECT_EQ(error({"train.length=75009"}),
            "task.key_length: at least 10001 keys are required by train.length "
            "= 75009, got task.alphabet^2 = 10000");
  EXPECT_EQ(error({"train.length=75009", "task.key_length=64"}), "no error");
}

TEST(CheckConfig, ACosineNeedsStepsAfterItsWarmup) {
  const auto error = [](const std::string& schedule) {
    return check_error_of(
        {"train.steps=100", "train.warmup=100", "train.schedule=" + schedule});
  };
  EXPECT_EQ(error("rsqrt"), "no error");
  expect_contains(error("cosine"), "train.steps: more than train.warmup = 100");
}

TEST(CheckConfig, RefusesSettingsThatWouldBeIgnored) {
  expect_contains(
      check_error_of({"train.optimizer=adam", "train.weight_decay=0.1"}),
      "train.weight_decay: 0 is required, adam has none");
  EXPECT_EQ(check_error_of({"train.weight_decay=0.1"}), "no error");
  EXPECT_EQ(check_error_of({"train.optimizer=muon", "train.weight_decay=0.1"}),
            "no error");
  expect_contains(
      check_error_of({"model.layers=1", "model.attention=lsh,local"}),
      "at most model.layers = 1 names are required, got 2");
  expect_contains(check_error_of({"lsh.causal=false"}), "lsh.causal: true");
}

}  // namespace
}  // namespace reformer
