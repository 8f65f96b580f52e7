#include "reformer/generate/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "reformer/base/errors.h"
#include "tests/generate/decoder_checks.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

using namespace decoding;

// Logits [batch, length, vocabulary] as LanguageModel::logits has them, the
// first `prompt` tokens read at once, the others one by one.
at::Tensor decoded(Decoder& decoder, const at::Tensor& tokens,
                   int64_t prompt = 0) {
  const std::vector<int64_t> lengths(tokens.size(0), prompt);
  std::vector<at::Tensor> logits = {
      decoder.prefill(tokens.narrow(1, 0, prompt), lengths)};
  for (int64_t t = prompt; t + 1 < tokens.size(1); ++t) {
    logits.push_back(decoder.step(tokens.select(1, t)));
  }
  return at::stack(logits, 1);
}

void expect_exact_steps(const Config& config, const std::string& name) {
  const LanguageModel model(config, at::kDouble);
  const auto tokens = random_tokens(2, kLength);
  const auto whole = whole_pass(model, tokens);
  Decoder decoder(model, 2);
  EXPECT_LT(difference(decoded(decoder, tokens), whole), 1e-9) << name;
  Decoder after_prompt(model, 2);
  EXPECT_LT(difference(decoded(after_prompt, tokens, 40),
                       whole.narrow(1, 40, kLength - 40)),
            1e-9)
      << name << " after a prompt";
}

TEST(Decoder, LshStepByStepIsTheWholePassForAnyRoundsAndLocalWindow) {
  struct Case {
    int64_t rounds;
    int64_t local_window;
  };
  for (const auto& [rounds, local_window] :
       {Case{1, 0}, {2, 5}, {3, 1}, {4, 100}, {4, 0}}) {
    auto config = small_config("lsh");
    config.lsh.rounds = rounds;
    config.lsh.local_window = local_window;
    expect_exact_steps(config, "rounds " + std::to_string(rounds) +
                                   ", local window " +
                                   std::to_string(local_window));
  }
}

TEST(Decoder, LshStepByStepIsTheWholePassForAnyBucketsAndWindow) {
  struct Case {
    int64_t n_buckets;
    int64_t chunk_length;
  };
  for (const auto& [n_buckets, chunk_length] :
       {Case{2, 1000}, {2, 3}, {20, 1}, {144, 3}}) {
    auto config = small_config("lsh");
    config.lsh.n_buckets = n_buckets;
    config.lsh.chunk_length = chunk_length;
    expect_exact_steps(config, "buckets " + std::to_string(n_buckets) +
                                   ", window " + std::to_string(chunk_length));
  }
}

TEST(Decoder, MoreRoundsInGroupsStepByStepAreTheWholePass) {
  for (const int64_t local_window : {0, 5}) {
    for (const int64_t rounds : {2, 3, 6}) {
      auto config = small_config("lsh");
      config.lsh.rounds = 2;
      config.lsh.local_window = local_window;
      config.lsh.more_rounds = MoreRounds::kGroups;
      config.model.successor_fraction = 0.5;
      const LanguageModel model(config, at::kDouble);
      const auto tokens = random_tokens(2, kLength);
      const auto whole = model.logits(tokens, evaluation_pass(config, rounds));
      Decoder decoder(model, 2, rounds);
      EXPECT_LT(difference(decoded(decoder, tokens, 40),
                           whole.narrow(1, 40, kLength - 40)),
                1e-9)
          << rounds << ", local window " << local_window;
    }
  }
}

TEST(Decoder, MoreRoundsInGroupsStepByStepInEveryInstructionSet) {
  auto config = small_config("lsh");
  config.lsh.rounds = 2;
  config.lsh.local_window = 5;
  config.lsh.more_rounds = MoreRounds::kGroups;
  config.model.successor_fraction = 0.5;
  const LanguageModel model(config);
  for_each_instruction_set([&](const std::string& set) {
    expect_steps_equal_the_whole(model, {40, 3}, kLength - 41, 2e-5, set,
                                 /*rounds=*/7);
  });
}

TEST(Decoder, LocalAttentionOfSeparateKeysStepByStepIsTheWholePass) {
  auto config = small_config("local_separate_qk,full");
  config.model.local_chunk_length = 7;
  config.model.norm_epsilon = 0.3;
  config.model.activation = "gelu_erf";
  expect_exact_steps(config, "local_separate_qk");
}

// Where a text is no longer than a chunk, nothing that comes later moves it.
TEST(Decoder, ShortTextsOfHuggingfaceStepByStepAreTheWholePass) {
  auto config = small_config("lsh_huggingface");
  config.model.bucket_factors = {4};
  config.lsh.local_window = 0;
  config.lsh.chunk_length = kLength;
  expect_exact_steps(config, "lsh_huggingface");
}

TEST(Decoder, TheSmallConfigOverflowsItsWindows) {
  const LanguageModel model(small_config("lsh"));
  const auto pass = evaluation_pass(model.config());
  EXPECT_GT(model.overflow(random_tokens(2, kLength), pass), 0.1);
}

TEST(Decoder, EveryAttentionStepByStepIsTheWholePass) {
  for (const std::string attention :
       {"full", "full_shared_qk", "local", "full,lsh,local"}) {
    expect_exact_steps(small_config(attention), attention);
  }
}

TEST(Decoder, SuccessorValuesStepByStepAreTheWholePass) {
  for (const std::string attention :
       {"lsh", "full_shared_qk", "local", "full,lsh,local"}) {
    for (const int64_t local_window : {0, 5}) {
      auto config = small_config(attention);
      config.model.successor_fraction = 0.5;
      config.lsh.local_window = local_window;
      expect_exact_steps(
          config, attention + ", local window " + std::to_string(local_window));
    }
  }
}

TEST(Decoder, HeadsThatDoNotHashStepByStepAreTheWholePass) {
  for (const std::string positions : {"learned", "rotary"}) {
    for (const LocalHeads local : {LocalHeads::kAll, LocalHeads::kOther}) {
      auto config = small_config("lsh,full,local");
      config.model.successor_fraction = 0.5;
      config.model.positions = positions;
      config.lsh.local_window = 5;
      config.lsh.hashed_heads = HashedHeads::kSuccessor;
      config.lsh.local_heads = local;
      expect_exact_steps(config, positions);
    }
  }
}

TEST(Decoder, NgramsStepByStepAreTheWholePass) {
  for (const int64_t longest : {2, 5}) {
    auto config = small_config("lsh,full,local");
    config.model.ngram_length = longest;
    config.model.ngram_rows = 37;
    expect_exact_steps(config, "n-grams of " + std::to_string(longest));
  }
}

TEST(Decoder, RoundsOfNgramsStepByStepAreTheWholePass) {
  for (const int64_t longest : {0, 3, 6}) {  // of embeddings besides
    for (const HashedHeads hashed :
         {HashedHeads::kAll, HashedHeads::kSuccessor}) {
      auto config = small_config("lsh,full,local");
      config.model.successor_fraction = 0.5;
      config.model.ngram_length = longest;
      config.model.ngram_rows = 37;
      config.lsh.local_window = 5;
      config.lsh.hashed_heads = hashed;
      config.lsh.ngrams = {2, 5};
      expect_exact_steps(config,
                         "embeddings of up to " + std::to_string(longest));
    }
  }
}

TEST(Decoder, ShortConvolutionsStepByStepAreTheWholePass) {
  for (const int64_t width : {2, 3, 5}) {
    auto config = small_config("lsh,full,local,full_shared_qk");
    config.model.layers = 4;
    config.model.successor_fraction = 0.5;
    config.model.positions = "rotary";
    config.model.short_convolution = width;
    expect_exact_steps(config, "convolutions of " + std::to_string(width));
  }
}

TEST(Decoder, LocalAttentionKeepsItsChunks) {
  for (const int64_t chunk_length : {1, 7, 1000}) {
    auto config = small_config("local");
    config.lsh.window = Window::kChunk;
    config.lsh.chunk_length = chunk_length;
    expect_exact_steps(config, std::to_string(chunk_length));
  }
}

TEST(Decoder, EveryBlockStepByStepIsTheWholePass) {
  for (const std::string block : {"reversible", "stored", "residual"}) {
    auto config = small_config("lsh,local");
    config.model.block = block;
    expect_exact_steps(config, block);
  }
}

TEST(Decoder, EveryPositionEncodingStepByStepIsTheWholePass) {
  for (const std::string positions :
       {"learned", "axial", "sinusoid", "rotary"}) {
    auto config = small_config("lsh,full,local");
    config.model.successor_fraction = 0.5;
    config.model.positions = positions;
    config.model.axial_shape = {8, 10};
    config.model.axial_dims = {12, 20};
    expect_exact_steps(config, positions);
  }
}

TEST(Decoder, HeadsOfAnySizeAndTextsOfSeveralPagesAreExact) {
  auto config = small_config("lsh,full,local");
  config.model.d_head = 13;
  config.lsh.local_window = 3;
  config.train.length = 2100;
  const LanguageModel model(config, at::kDouble);
  const auto tokens = random_tokens(1, 2060);
  Decoder decoder(model);
  EXPECT_LT(difference(decoded(decoder, tokens, 2040),
                       whole_pass(model, tokens).narrow(1, 2040, 20)),
            1e-9);
}

// The whole pass of a row alone, from token `first` on.
void expect_row(const LanguageModel& model, const at::Tensor& tokens,
                int64_t row, int64_t first, const at::Tensor& logits) {
  const int64_t n = logits.size(1);
  const auto own = tokens.narrow(0, row, 1).narrow(1, 0, first + n);
  EXPECT_LT(difference(logits.narrow(0, row, 1),
                       whole_pass(model, own).narrow(1, first, n)),
            1e-9)
      << "row " << row;
}

TEST(Decoder, PromptsOfDifferentLengthsDoNotInfluenceEachOther) {
  auto config = small_config("lsh,local,full");
  config.lsh.local_window = 4;
  config.model.short_convolution = 4;  // two prompts are shorter
  const LanguageModel model(config, at::kDouble);
  const std::vector<int64_t> lengths = {31, 0, 58, 1};
  const auto tokens = random_tokens(4, kLength);
  Decoder decoder(model, 4);
  std::vector<at::Tensor> logits = {decoder.prefill(tokens, lengths)};
  for (int64_t t = 0; t < 15; ++t) {
    auto next = at::empty({4}, at::kLong);
    for (int64_t row = 0; row < 4; ++row) {
      next[row] = tokens[row][lengths[row] + t];
    }
    logits.push_back(decoder.step(next));
  }
  for (int64_t row = 0; row < 4; ++row) {
    expect_row(model, tokens, row, lengths[row], at::stack(logits, 1));
  }
}

TEST(Decoder, RoundsMayDifferFromTheConfigs) {
  const auto config = small_config("lsh");
  const LanguageModel model(config, at::kDouble);
  const auto tokens = random_tokens(1, kLength);
  Decoder decoder(model, /*batch=*/1, /*rounds=*/5);
  const auto logits = decoded(decoder, tokens);
  EXPECT_LT(
      difference(logits, model.logits(tokens, evaluation_pass(config, 5))),
      1e-9);
  EXPECT_GT(difference(logits, whole_pass(model, tokens)), 1e-3);
}

TEST(Decoder, ModelsOfChunkWindowsAreDecodedWithTrailingOnes) {
  auto config = small_config("lsh");
  const LanguageModel trailing(config, at::kDouble);
  config.lsh.window = Window::kChunk;
  const LanguageModel chunk(config, at::kDouble);
  const auto tokens = random_tokens(1, kLength);
  for (const int64_t prompt : {0, 50}) {
    Decoder decoder(chunk);
    const auto logits = decoded(decoder, tokens, prompt);
    const int64_t n = kLength - prompt;
    EXPECT_LT(
        difference(logits, whole_pass(trailing, tokens).narrow(1, prompt, n)),
        1e-9);
    EXPECT_GT(
        difference(logits, whole_pass(chunk, tokens).narrow(1, prompt, n)),
        1e-3);
  }
}

TEST(Decoder, Fp32EqualsTheWholePassToRoundingGivenItsBuckets) {
  for (const std::string attention :
       {"lsh", "lsh,local,full", "lsh,full_shared_qk"}) {
    auto config = small_config(attention);
    config.lsh.local_window = 5;
    const LanguageModel model(config);
    expect_steps_equal_the_whole(model, {0, 0}, kLength - 1, 2e-5, attention);
  }
}

TEST(Decoder, Fp32HashesFewerThanOneBucketInTenThousandOtherwise) {
  auto config = small_config("lsh");
  config.lsh.rounds = 4;
  config.lsh.n_buckets = 20;
  config.train.length = 200;
  EXPECT_LT(share_of_other_buckets(LanguageModel(config), /*rows=*/8), 1e-4);
}

TEST(Decoder, RefusesWhatItCannotDo) {
  const LanguageModel model(small_config("lsh"));
  const auto tokens = random_tokens(1, kLength);
  Decoder decoder(model);
  EXPECT_THROW(decoder.step(tokens.select(1, 0)), Error);   // nothing read
  EXPECT_THROW(decoder.prefill(tokens, {kLength}), Error);  // no position left
  EXPECT_THROW(decoder.prefill(tokens, {kLength + 1}), Error);
  EXPECT_THROW(decoder.prefill(tokens, {3, 3}), Error);
  EXPECT_THROW(decoder.prefill(tokens + kVocabulary, {3}), Error);
  EXPECT_THROW(decoder.prefill(tokens - kVocabulary, {3}), Error);
  decoder.prefill(tokens, {kLength - 2});
  EXPECT_THROW(decoder.prefill(tokens, {3}), Error);  // a second time
  decoder.step(tokens.select(1, kLength - 2));
  EXPECT_THROW(decoder.step(tokens.select(1, kLength - 1)), Error);
  EXPECT_THROW(Decoder(model, 0), Error);
  EXPECT_THROW(Decoder(model, 1, -1), Error);
}

TEST(Decoder, GoesOnAfterAStepThatWasRefused) {
  const LanguageModel model(small_config("lsh"));
  const auto tokens = random_tokens(1, kLength);
  const auto steps = [&](bool refused) {
    Decoder decoder(model);
    decoder.prefill(tokens, {10});
    at::Tensor logits;
    for (int64_t t = 10; t < 20; ++t) {
      Decoder::Buckets wrong(model.stack().blocks().size(),
                             at::zeros({1, 1, 1, 7}, at::kUInt16));
      if (refused) {
        EXPECT_THROW(decoder.step(tokens.select(1, t), &wrong), Error);
        EXPECT_THROW(decoder.step(tokens.select(1, t) - kVocabulary), Error);
      }
      logits = decoder.step(tokens.select(1, t));
    }
    return logits;
  };
  EXPECT_TRUE(steps(true).equal(steps(false)));
}

TEST(Decoder, RefusesBucketsOutOfRangeAndGoesOnAsIfNothingHappened) {
  expect_refusal_changes_nothing(LanguageModel(small_config("lsh")));
}

TEST(Decoder, ThreadsWithADecoderEachGetWhatOneAloneGets) {
  const LanguageModel model(small_config("lsh"));
  const auto tokens = random_tokens(4, kLength);
  const auto alone = [&](int64_t row) {
    Decoder decoder(model);
    return decoded(decoder, tokens.narrow(0, row, 1), 10);
  };
  std::vector<at::Tensor> together(tokens.size(0));
  std::vector<std::thread> threads;
  for (int64_t row = 0; row < tokens.size(0); ++row) {
    threads.emplace_back([&, row] { together[row] = alone(row); });
  }
  for (auto& thread : threads) thread.join();
  for (int64_t row = 0; row < tokens.size(0); ++row) {
    EXPECT_TRUE(together[row].equal(alone(row))) << "thread " << row;
  }
}

}  // namespace
}  // namespace reformer
