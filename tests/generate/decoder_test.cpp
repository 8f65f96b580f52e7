#include "reformer/generate/decoder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "reformer/core/errors.h"

namespace reformer {
namespace {

constexpr int64_t kLength = 78;
constexpr int64_t kVocabulary = 23;

// Few buckets and few symbols: buckets are longer than their windows.
Config small_config(const std::string& attention) {
  Config config;
  config.task.name = "duplication";
  config.task.symbols = kVocabulary - 1;
  config.model.layers = 3;
  config.model.d_model = 32;
  config.model.d_ff = 40;
  config.model.heads = 2;
  config.model.vocabulary = kVocabulary;
  config.model.attention = attention;
  config.lsh.rounds = 2;
  config.lsh.chunk_length = 7;
  config.lsh.n_buckets = 6;
  config.train.length = kLength;
  config.train.seed = 5;
  return config;
}

at::Tensor random_symbols(int64_t batch, int64_t length) {
  const auto random = at::detail::createCPUGenerator(/*seed=*/3);
  return at::randint(kVocabulary, {batch, length}, random,
                     at::TensorOptions().dtype(at::kLong));
}

Pass evaluation_pass(const Config& config, int64_t rounds = 0) {
  Pass pass;
  pass.seed = static_cast<uint64_t>(config.train.seed);
  pass.rounds = rounds;
  return pass;
}

at::Tensor whole_pass(const LanguageModel& model, const at::Tensor& symbols,
                      Decoder::Buckets* buckets = nullptr) {
  return model.logits(symbols, evaluation_pass(model.config()), buckets);
}

// Position t of every layer's buckets.
Decoder::Buckets at_position(const Decoder::Buckets& whole, int64_t t) {
  Decoder::Buckets part;
  for (const auto& buckets : whole) {
    part.push_back(buckets.defined() ? buckets.narrow(3, t, 1) : buckets);
  }
  return part;
}

// Logits [batch, length, vocabulary] as LanguageModel::logits has them, the
// first `prompt` symbols read at once, the others one by one.
at::Tensor decoded(Decoder& decoder, const at::Tensor& symbols,
                   int64_t prompt = 0) {
  const std::vector<int64_t> lengths(symbols.size(0), prompt);
  std::vector<at::Tensor> logits = {
      decoder.read(symbols.narrow(1, 0, prompt), lengths)};
  for (int64_t t = prompt; t + 1 < symbols.size(1); ++t) {
    logits.push_back(decoder.step(symbols.select(1, t)));
  }
  return at::stack(logits, 1);
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return (a - b).abs().max().item<double>();
}

void expect_steps_equal_the_whole(const Config& config,
                                  const std::string& name) {
  const LanguageModel model(config, at::kDouble);
  const auto symbols = random_symbols(2, kLength);
  const auto whole = whole_pass(model, symbols);
  Decoder decoder(model, 2);
  EXPECT_LT(difference(decoded(decoder, symbols), whole), 1e-9) << name;
  Decoder after_prompt(model, 2);
  EXPECT_LT(difference(decoded(after_prompt, symbols, 40),
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
    expect_steps_equal_the_whole(config, "rounds " + std::to_string(rounds) +
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
    expect_steps_equal_the_whole(
        config, "buckets " + std::to_string(n_buckets) + ", window " +
                    std::to_string(chunk_length));
  }
}

TEST(Decoder, TheSmallConfigOverflowsItsWindows) {
  const LanguageModel model(small_config("lsh"));
  const auto pass = evaluation_pass(model.config());
  EXPECT_GT(model.overflow(random_symbols(2, kLength), pass), 0.1);
}

TEST(Decoder, EveryAttentionStepByStepIsTheWholePass) {
  for (const std::string attention :
       {"full", "full_shared_qk", "local", "full,lsh,local"}) {
    expect_steps_equal_the_whole(small_config(attention), attention);
  }
}

TEST(Decoder, LocalAttentionKeepsItsChunks) {
  for (const int64_t chunk_length : {1, 7, 1000}) {
    auto config = small_config("local");
    config.lsh.window = Window::kChunk;
    config.lsh.chunk_length = chunk_length;
    expect_steps_equal_the_whole(config, std::to_string(chunk_length));
  }
}

TEST(Decoder, EveryBlockStepByStepIsTheWholePass) {
  for (const std::string block : {"reversible", "stored", "residual"}) {
    auto config = small_config("lsh,local");
    config.model.block = block;
    expect_steps_equal_the_whole(config, block);
  }
}

TEST(Decoder, EveryPositionEncodingStepByStepIsTheWholePass) {
  for (const std::string positions : {"learned", "axial", "sinusoid"}) {
    auto config = small_config("lsh");
    config.model.positions = positions;
    config.model.axial_shape = {8, 10};
    config.model.axial_dims = {12, 20};
    expect_steps_equal_the_whole(config, positions);
  }
}

TEST(Decoder, HeadsOfAnySizeAndTextsOfSeveralPagesAreExact) {
  auto config = small_config("lsh,full,local");
  config.model.d_head = 13;
  config.lsh.local_window = 3;
  config.train.length = 2100;
  const LanguageModel model(config, at::kDouble);
  const auto symbols = random_symbols(1, 2060);
  Decoder decoder(model);
  EXPECT_LT(difference(decoded(decoder, symbols, 2040),
                       whole_pass(model, symbols).narrow(1, 2040, 20)),
            1e-9);
}

// The whole pass of a row alone, from symbol `first` on.
void expect_row(const LanguageModel& model, const at::Tensor& symbols,
                int64_t row, int64_t first, const at::Tensor& logits) {
  const int64_t n = logits.size(1);
  const auto own = symbols.narrow(0, row, 1).narrow(1, 0, first + n);
  EXPECT_LT(difference(logits.narrow(0, row, 1),
                       whole_pass(model, own).narrow(1, first, n)),
            1e-9)
      << "row " << row;
}

TEST(Decoder, PromptsOfDifferentLengthsDoNotInfluenceEachOther) {
  auto config = small_config("lsh,local,full");
  config.lsh.local_window = 4;
  const LanguageModel model(config, at::kDouble);
  const std::vector<int64_t> lengths = {31, 0, 58, 1};
  const auto symbols = random_symbols(4, kLength);
  Decoder decoder(model, 4);
  std::vector<at::Tensor> logits = {decoder.read(symbols, lengths)};
  for (int64_t t = 0; t < 15; ++t) {
    auto next = at::empty({4}, at::kLong);
    for (int64_t row = 0; row < 4; ++row) {
      next[row] = symbols[row][lengths[row] + t];
    }
    logits.push_back(decoder.step(next));
  }
  for (int64_t row = 0; row < 4; ++row) {
    expect_row(model, symbols, row, lengths[row], at::stack(logits, 1));
  }
}

TEST(Decoder, RoundsMayDifferFromTheConfigs) {
  const auto config = small_config("lsh");
  const LanguageModel model(config, at::kDouble);
  const auto symbols = random_symbols(1, kLength);
  Decoder decoder(model, /*batch=*/1, /*rounds=*/5);
  const auto logits = decoded(decoder, symbols);
  EXPECT_LT(
      difference(logits, model.logits(symbols, evaluation_pass(config, 5))),
      1e-9);
  EXPECT_GT(difference(logits, whole_pass(model, symbols)), 1e-3);
}

TEST(Decoder, ModelsOfChunkWindowsAreDecodedWithTrailingOnes) {
  auto config = small_config("lsh");
  const LanguageModel trailing(config, at::kDouble);
  config.lsh.window = Window::kChunk;
  const LanguageModel chunk(config, at::kDouble);
  const auto symbols = random_symbols(1, kLength);
  for (const int64_t prompt : {0, 50}) {
    Decoder decoder(chunk);
    const auto logits = decoded(decoder, symbols, prompt);
    const int64_t n = kLength - prompt;
    EXPECT_LT(
        difference(logits, whole_pass(trailing, symbols).narrow(1, prompt, n)),
        1e-9);
    EXPECT_GT(
        difference(logits, whole_pass(chunk, symbols).narrow(1, prompt, n)),
        1e-3);
  }
}

TEST(Decoder, Fp32EqualsTheWholePassToRoundingGivenItsBuckets) {
  for (const std::string attention :
       {"lsh", "lsh,local,full", "lsh,full_shared_qk"}) {
    auto config = small_config(attention);
    config.lsh.local_window = 5;
    const LanguageModel model(config);
    const auto symbols = random_symbols(2, kLength);
    Decoder::Buckets buckets;
    const auto whole = whole_pass(model, symbols, &buckets);
    const double bar = 2e-5 * whole.abs().max().item<double>();

    Decoder decoder(model, 2);
    auto first = at_position(buckets, 0);
    const auto no_prompt = at::empty({2, 0}, at::kLong);
    EXPECT_LT(
        difference(decoder.read(no_prompt, {0, 0}, &first), whole.select(1, 0)),
        bar);
    for (int64_t t = 0; t + 1 < kLength; ++t) {
      auto given = at_position(buckets, t + 1);
      const auto logits = decoder.step(symbols.select(1, t), &given);
      ASSERT_LT(difference(logits, whole.select(1, t + 1)), bar)
          << attention << ", symbol " << t + 1;
    }
  }
}

int64_t differing(const Decoder::Buckets& a, const Decoder::Buckets& b) {
  int64_t n = 0;
  for (std::size_t layer = 0; layer < a.size(); ++layer) {
    n += a[layer].to(at::kInt).ne(b[layer].to(at::kInt)).sum().item<int64_t>();
  }
  return n;
}

TEST(Decoder, Fp32HashesFewerThanOneBucketInTenThousandOtherwise) {
  constexpr int64_t kRows = 8;
  auto config = small_config("lsh");
  config.lsh.rounds = 4;
  config.lsh.n_buckets = 20;
  config.train.length = 200;
  const LanguageModel model(config);
  const auto symbols = random_symbols(kRows, 200);
  Decoder::Buckets buckets;
  whole_pass(model, symbols, &buckets);
  Decoder decoder(model, kRows);
  decoder.read(at::empty({kRows, 0}, at::kLong),
               std::vector<int64_t>(kRows, 0));
  int64_t flips = 0;
  int64_t count = 0;
  for (int64_t t = 0; t + 1 < 200; ++t) {
    Decoder::Buckets hashed;
    decoder.step(symbols.select(1, t), &hashed);
    flips += differing(hashed, at_position(buckets, t + 1));
    for (const auto& layer : hashed) count += layer.numel();
  }
  EXPECT_GT(count, 30000);
  EXPECT_LT(double(flips), 1e-4 * double(count));
}

TEST(Decoder, RefusesWhatItCannotDo) {
  const LanguageModel model(small_config("lsh"));
  const auto symbols = random_symbols(1, kLength);
  Decoder decoder(model);
  EXPECT_THROW(decoder.step(symbols.select(1, 0)), Error);  // nothing read
  EXPECT_THROW(decoder.read(symbols, {kLength}), Error);    // no position left
  EXPECT_THROW(decoder.read(symbols, {kLength + 1}), Error);
  EXPECT_THROW(decoder.read(symbols, {3, 3}), Error);
  EXPECT_THROW(decoder.read(symbols + kVocabulary, {3}), Error);
  EXPECT_THROW(decoder.read(symbols - kVocabulary, {3}), Error);
  decoder.read(symbols, {kLength - 2});
  EXPECT_THROW(decoder.read(symbols, {3}), Error);  // a second time
  decoder.step(symbols.select(1, kLength - 2));
  EXPECT_THROW(decoder.step(symbols.select(1, kLength - 1)), Error);
  EXPECT_THROW(Decoder(model, 0), Error);
  EXPECT_THROW(Decoder(model, 1, -1), Error);
}

}  // namespace
}  // namespace reformer
