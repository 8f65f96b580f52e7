// The checks of tests/generate/decoder_test.cpp, on a GPU.
#include "reformer/generate/decoder.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "reformer/base/errors.h"
#include "tests/cuda/no_more_memory.h"
#include "tests/generate/decoder_checks.h"

namespace reformer {
namespace {

using namespace decoding;

const Placement kFloat32(at::Device(at::kCUDA, 0), at::kFloat);
constexpr double kRounding = 2e-5;

void expect_same(const Config& config, const std::string& name) {
  const LanguageModel model(config, kFloat32);
  expect_steps_equal_the_whole(model, {0, 0}, kLength - 1, kRounding, name);
  expect_steps_equal_the_whole(model, {40}, kLength - 41, kRounding,
                               name + " after a prompt");
}

TEST(CudaDecoder, LshStepByStepIsTheWholePassForAnyRoundsAndLocalWindow) {
  struct Case {
    int64_t rounds;
    int64_t local_window;
  };
  for (const auto& [rounds, local_window] :
       {Case{1, 0}, {2, 5}, {3, 1}, {4, 100}, {4, 0}, {16, 3}}) {
    auto config = small_config("lsh");
    config.lsh.rounds = rounds;
    config.lsh.local_window = local_window;
    expect_same(config, "rounds " + std::to_string(rounds) + ", local window " +
                            std::to_string(local_window));
  }
}

TEST(CudaDecoder, LshStepByStepIsTheWholePassForAnyBucketsAndWindow) {
  struct Case {
    int64_t n_buckets;
    int64_t chunk_length;
  };
  for (const auto& [n_buckets, chunk_length] :
       {Case{2, 1000}, {2, 3}, {20, 1}, {144, 3}}) {
    auto config = small_config("lsh");
    config.lsh.n_buckets = n_buckets;
    config.lsh.chunk_length = chunk_length;
    expect_same(config, "buckets " + std::to_string(n_buckets) + ", window " +
                            std::to_string(chunk_length));
  }
}

TEST(CudaDecoder, EveryAttentionStepByStepIsTheWholePass) {
  for (const std::string attention :
       {"full", "full_shared_qk", "local", "full,lsh,local"}) {
    expect_same(small_config(attention), attention);
  }
}

TEST(CudaDecoder, LocalAttentionKeepsItsChunks) {
  for (const int64_t chunk_length : {1, 7, 1000}) {
    auto config = small_config("local");
    config.lsh.window = Window::kChunk;
    config.lsh.chunk_length = chunk_length;
    expect_same(config, std::to_string(chunk_length));
  }
}

// Of one chunk, beyond which later tokens move what earlier ones see.
TEST(CudaDecoder, ModelsOfHuggingfaceStepByStepAreTheWholePass) {
  auto config = small_config("local_separate_qk,lsh_huggingface");
  config.model.bucket_factors = {4, 6};
  config.model.local_chunk_length = kLength;
  config.model.norm_epsilon = 0.3;
  config.model.activation = "gelu_erf";
  config.lsh.local_window = 0;
  config.lsh.chunk_length = kLength;
  expect_same(config, "huggingface");
  config.model.attention = AttentionKinds("local_separate_qk");
  config.model.bucket_factors = {};
  config.model.local_chunk_length = 7;
  expect_same(config, "local_separate_qk");
}

// Calls body(config, name).
template <class Body>
void for_every_block_and_position_encoding(const Body& body) {
  for (const std::string block : {"reversible", "stored", "residual"}) {
    for (const std::string positions :
         {"learned", "axial", "sinusoid", "rotary"}) {
      auto config = small_config("lsh,local");
      config.model.successor_fraction = 0.5;
      config.model.block = block;
      config.model.positions = positions;
      config.model.axial_shape = {8, 10};
      config.model.axial_dims = {12, 20};
      body(config, block + ", " + positions);
    }
  }
}

// Embeddings and rounds of n-grams, heads that do not hash, short convolutions.
Config config_of_ngrams(LocalHeads local) {
  auto config = small_config("lsh,full,local");
  config.model.successor_fraction = 0.5;
  config.model.positions = "rotary";
  config.model.ngram_length = 3;
  config.model.ngram_rows = 37;
  config.lsh.local_window = 5;
  config.lsh.hashed_heads = HashedHeads::kSuccessor;
  config.lsh.local_heads = local;
  config.lsh.ngrams = {2, 5};
  config.model.short_convolution = 4;
  return config;
}

TEST(CudaDecoder, NgramsAndNearHeadsStepByStepAreTheWholePass) {
  for (const LocalHeads local : {LocalHeads::kAll, LocalHeads::kOther}) {
    expect_same(config_of_ngrams(local), "n-grams");
  }
}

TEST(CudaDecoder, EveryBlockAndPositionEncodingStepByStepIsTheWholePass) {
  for_every_block_and_position_encoding(expect_same);
}

TEST(CudaDecoder, MoreRoundsInGroupsStepByStepAreTheWholePass) {
  auto config = small_config("lsh");
  config.model.d_head = 24;
  config.model.successor_fraction = 0.5;
  config.lsh.rounds = 2;
  config.lsh.local_window = 5;
  config.lsh.more_rounds = MoreRounds::kGroups;
  const LanguageModel model(config, kFloat32);
  expect_steps_equal_the_whole(model, {40, 3}, kLength - 41, kRounding, "",
                               /*rounds=*/7);
}

TEST(CudaDecoder, TextsOfSeveralPagesAreRight) {
  auto config = small_config("lsh,full,local");
  config.model.d_head = 24;
  config.lsh.local_window = 3;
  config.train.length = 2100;
  const LanguageModel model(config, kFloat32);
  expect_steps_equal_the_whole(model, {2040}, 20, kRounding, "");
}

TEST(CudaDecoder, PromptsOfDifferentLengthsDoNotInfluenceEachOther) {
  auto config = small_config("lsh,local,full");
  config.lsh.local_window = 4;
  const LanguageModel model(config, kFloat32);
  expect_steps_equal_the_whole(model, {31, 0, 58, 1}, 15, kRounding, "4 rows");
  // More rows than the kernels of few rows take.
  expect_steps_equal_the_whole(model, {3, 1, 4, 1, 5, 9, 2, 6, 5}, 15,
                               kRounding, "9 rows");
}

TEST(CudaDecoder, IsTheCpusDecoder) {
  auto config = small_config("lsh,local,full,full_shared_qk");
  config.model.layers = 4;
  config.lsh.local_window = 5;
  const LanguageModel here(config);
  const LanguageModel there(config, kFloat32);
  const auto tokens = random_tokens(2, kLength);
  Decoder on_cpu(here, 2);
  Decoder on_gpu(there, 2);
  const auto given = [](const Decoder::Buckets& used) {
    Decoder::Buckets copies;
    for (const auto& x : used) copies.push_back(x.defined() ? x.cuda() : x);
    return copies;
  };
  Decoder::Buckets used;
  on_cpu.prefill(tokens.narrow(1, 0, 9), {9, 4}, &used);
  auto copies = given(used);
  on_gpu.prefill(tokens.narrow(1, 0, 9), {9, 4}, &copies);
  for (int64_t t = 9; t + 1 < kLength; ++t) {
    used.clear();
    const auto expected = on_cpu.step(tokens.select(1, t), &used);
    copies = given(used);
    const auto found = on_gpu.step(tokens.select(1, t), &copies);
    ASSERT_LE(difference(found.cpu(), expected),
              kRounding * expected.abs().max().item<double>())
        << "token " << t;
  }
}

TEST(CudaDecoder, Fp32HashesFewerThanOneBucketInTenThousandOtherwise) {
  auto config = small_config("lsh");
  config.lsh.rounds = 4;
  config.lsh.n_buckets = 20;
  config.train.length = 200;
  EXPECT_LT(share_of_other_buckets(LanguageModel(config, kFloat32), 8), 1e-4);
}

// In bfloat16 the steps round otherwise than the whole pass, by as much as the
// whole pass itself is wrong.
TEST(CudaDecoder, Bfloat16EqualsTheWholePassToItsRounding) {
  auto config = small_config("lsh,local,full");
  config.lsh.local_window = 5;
  Placement half(at::Device(at::kCUDA, 0), at::kBFloat16);
  for (const auto matrices : {at::kFloat, at::kBFloat16}) {
    half.matrices = matrices;
    const LanguageModel model(config, half);
    expect_steps_equal_the_whole(model, {20, 3}, 50, 2e-2,
                                 at::toString(matrices));
    expect_steps_equal_the_whole(model, {7}, 50, 2e-2, "one row");
  }
}

TEST(CudaDecoder, MatricesKeptAsProductsTakeThemGiveTheSameBits) {
  const auto config = small_config("lsh,local,full");
  const auto trained = placement_on(kFloat32.device, Precision::kBfloat16);
  const auto used = placement_for_use(kFloat32.device, Precision::kBfloat16);
  const LanguageModel large(config, trained);
  const LanguageModel small(config, used);
  const auto bytes = [](const LanguageModel& model) {
    std::size_t sum = 0;
    for (const auto& parameter : model.parameters()) {
      sum += parameter.value.nbytes();
    }
    return sum;
  };
  EXPECT_LT(double(bytes(small)), 0.7 * double(bytes(large)));
  const auto tokens = random_tokens(2, kLength);
  EXPECT_TRUE(whole_pass(small, tokens).equal(whole_pass(large, tokens)));
}

TEST(CudaDecoder, RowsAreTheSameBitsAloneAndAmongOthers) {
  auto config = small_config("lsh,local,full");
  config.lsh.local_window = 4;
  config.train.length = 400;
  Placement half(at::Device(at::kCUDA, 0), at::kBFloat16);
  const LanguageModel model(config, half);
  const auto tokens = random_tokens(2, 340);
  // The prompts' passes may round otherwise; steps from the start do not.
  Decoder both(model, 2);
  Decoder alone(model, 2);
  both.prefill(tokens.narrow(1, 0, 0), {0, 0});
  alone.prefill(tokens.narrow(1, 0, 0), {0, 0});
  for (int64_t t = 0; t < 339; ++t) {
    auto others = tokens.select(1, t).clone();
    others[1] = (others[1] + 1) % kVocabulary;
    const auto a = both.step(tokens.select(1, t));
    const auto b = alone.step(others);
    ASSERT_TRUE(a[0].equal(b[0])) << t;
    ASSERT_FALSE(a[1].equal(b[1])) << t;
  }
}

// The next tokens of every row, one step after the other.
std::vector<at::Tensor> some_steps(int64_t batch, int64_t steps) {
  std::vector<at::Tensor> tokens;
  const auto all = random_tokens(batch, steps);
  for (int64_t t = 0; t < steps; ++t) tokens.push_back(all.select(1, t));
  return tokens;
}

// Prompts of random tokens.
void read_prompts(Decoder& decoder, const std::vector<int64_t>& prompts) {
  const auto batch = static_cast<int64_t>(prompts.size());
  const int64_t longest = *std::max_element(prompts.begin(), prompts.end());
  decoder.prefill(random_tokens(batch, longest), prompts);
}

// Two decoders of the same texts: one replays, the other has to leave its
// buckets and therefore computes every step as it comes. Nothing waits between
// steps, and all logits are kept to the end. Now and then the replaying one is
// given buckets too.
void expect_replayed_equals_computed(const LanguageModel& model,
                                     const std::vector<int64_t>& prompts,
                                     int64_t steps, const std::string& name) {
  const auto batch = static_cast<int64_t>(prompts.size());
  Decoder replaying(model, batch);
  Decoder computing(model, batch);
  read_prompts(replaying, prompts);
  read_prompts(computing, prompts);
  std::vector<at::Tensor> expected;
  std::vector<at::Tensor> found;
  for (const auto& tokens : some_steps(batch, steps)) {
    Decoder::Buckets hashed;
    expected.push_back(computing.step(tokens, &hashed));
    const bool given = found.size() % 11 == 5;
    found.push_back(replaying.step(tokens, given ? &hashed : nullptr));
    EXPECT_FALSE(computing.captured());
  }
  EXPECT_TRUE(replaying.captured()) << name;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(found[i].equal(expected[i])) << name << ", step " << i;
  }
}

TEST(CudaDecoder, ReplayedStepsAreComputedOnesBitForBit) {
  for (const std::string attention : {"lsh", "local", "full", "full_shared_qk",
                                      "lsh,full,local,full_shared_qk"}) {
    for (const int64_t local_window : {0, 5}) {
      if (local_window > 0 && attention.find("lsh") != 0) continue;
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        auto config = small_config(attention);
        config.model.layers = 4;
        config.lsh.local_window = local_window;
        config.train.length = 2200;
        const LanguageModel model(config, Placement(kFloat32.device, type));
        const auto name = attention + ", window " +
                          std::to_string(local_window) + ", " +
                          at::toString(type);
        // Texts that get another page: where the table grows, the capture is
        // made anew; where it has room, the same one sees the page.
        expect_replayed_equals_computed(model, {1010}, 40, name + ", 1 row");
        expect_replayed_equals_computed(model, {1010, 3, 2035, 500}, 40,
                                        name + ", 4 rows");
        expect_replayed_equals_computed(model, {3, 1, 4, 1, 5, 9, 2, 1015, 5},
                                        40, name + ", 9 rows");
      }
    }
  }
}

TEST(CudaDecoder, ReplayedStepsOfEveryBlockAndPositionEncodingAreComputedOnes) {
  for_every_block_and_position_encoding(
      [](const Config& config, const std::string& name) {
        const LanguageModel model(config, kFloat32);
        expect_replayed_equals_computed(model, {7, 0}, 30, name);
      });
}

TEST(CudaDecoder, ReplayedStepsOfNgramsAndNearHeadsAreComputedOnes) {
  for (const LocalHeads local : {LocalHeads::kAll, LocalHeads::kOther}) {
    const LanguageModel model(config_of_ngrams(local), kFloat32);
    expect_replayed_equals_computed(model, {7, 0}, 30, "n-grams");
  }
}

TEST(CudaDecoder, ReplayedStepsOfMatricesThatAreConvertedAreComputedOnes) {
  Placement half(kFloat32.device, at::kBFloat16);
  for (const auto matrices : {at::kFloat, at::kBFloat16}) {
    half.matrices = matrices;
    const LanguageModel model(small_config("lsh,full"), half);
    expect_replayed_equals_computed(model, {7}, 30, at::toString(matrices));
    expect_replayed_equals_computed(model, std::vector<int64_t>(20, 7), 30,
                                    "20 rows");
  }
}

// The table of pages grows three times.
TEST(CudaDecoder, ReplayedStepsOfALongTextAreComputedOnes) {
  auto config = small_config("lsh,local,full");
  config.lsh.local_window = 4;
  config.train.length = 4200;
  const LanguageModel model(config, Placement(kFloat32.device, at::kBFloat16));
  expect_replayed_equals_computed(model, {900, 2}, 3200, "");
}

TEST(CudaDecoder, DecodersTakeTurnsAndEndAtAnyTime) {
  const LanguageModel model(small_config("lsh,local,full"), kFloat32);
  const auto tokens = some_steps(2, 30);
  const auto alone = [&](const std::vector<int64_t>& prompts) {
    Decoder decoder(model, 2);
    read_prompts(decoder, prompts);
    at::Tensor logits;
    for (const auto& next : tokens) logits = decoder.step(next);
    return logits;
  };
  const auto expected = alone({4, 9});
  EXPECT_FALSE(alone({5, 2}).equal(expected));
  Decoder decoder(model, 2);
  read_prompts(decoder, {4, 9});
  auto other = std::make_unique<Decoder>(model, 2);
  read_prompts(*other, {5, 2});
  at::Tensor found;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    found = decoder.step(tokens[i]);
    if (other) other->step(tokens[i]);
    if (i == 20) other.reset();
  }
  EXPECT_TRUE(decoder.captured());
  EXPECT_TRUE(found.equal(expected));
}

TEST(CudaDecoder, GoesOnWithoutAGraphWhereMemoryIsShort) {
  const LanguageModel model(small_config("lsh,local,full"), kFloat32);
  const auto tokens = some_steps(2, 30);
  const auto last_logits = [&] {
    Decoder decoder(model, 2);
    read_prompts(decoder, {4, 9});
    at::Tensor logits;
    for (const auto& next : tokens) logits = decoder.step(next);
    return std::pair(logits, decoder.captured());
  };
  const auto [expected, captured] = last_logits();
  EXPECT_TRUE(captured);
  const NoMoreMemory taken(kFloat32.device);
  const auto [found, captured_too] = last_logits();
  EXPECT_FALSE(captured_too);
  EXPECT_TRUE(found.equal(expected));
}

TEST(CudaDecoder, SinusoidsAreTheCpus) {
  auto config = small_config("lsh");
  config.model.positions = "sinusoid";
  ParameterStore here(0, Placement());
  ParameterStore there(0, kFloat32);
  const auto expected = Positions(config, here).encode(60000, 5000);
  const auto found = Positions(config, there).encode(60000, 5000);
  EXPECT_LE(difference(found.cpu(), expected), 1e-6);
}

TEST(CudaDecoder, RefusesWhatItCannotDo) {
  const LanguageModel model(small_config("lsh"), kFloat32);
  const auto tokens = random_tokens(1, kLength);
  Decoder decoder(model);
  EXPECT_THROW(decoder.step(tokens.select(1, 0)), Error);    // nothing read
  EXPECT_THROW(decoder.prefill(tokens.cuda(), {3}), Error);  // would wait
  decoder.prefill(tokens, {kLength - 2});
  decoder.step(tokens.select(1, kLength - 2));
  EXPECT_THROW(decoder.step(tokens.select(1, kLength - 1)), Error);
}

}  // namespace
}  // namespace reformer
