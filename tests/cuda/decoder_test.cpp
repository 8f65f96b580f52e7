// The judges of tests/generate/decoder_test.cpp, on a GPU.
#include "reformer/generate/decoder.h"

#include <gtest/gtest.h>

#include "reformer/core/errors.h"
#include "tests/generate/decoder_judges.h"

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

TEST(CudaDecoder, EveryBlockAndPositionEncodingStepByStepIsTheWholePass) {
  for (const std::string block : {"reversible", "stored", "residual"}) {
    for (const std::string positions : {"learned", "axial", "sinusoid"}) {
      auto config = small_config("lsh,local");
      config.model.block = block;
      config.model.positions = positions;
      config.model.axial_shape = {8, 10};
      config.model.axial_dims = {12, 20};
      expect_same(config, block + ", " + positions);
    }
  }
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
  const auto symbols = random_symbols(2, kLength);
  Decoder on_cpu(here, 2);
  Decoder on_gpu(there, 2);
  const auto given = [](const Decoder::Buckets& used) {
    Decoder::Buckets copies;
    for (const auto& x : used) copies.push_back(x.defined() ? x.cuda() : x);
    return copies;
  };
  Decoder::Buckets used;
  on_cpu.read(symbols.narrow(1, 0, 9), {9, 4}, &used);
  auto copies = given(used);
  on_gpu.read(symbols.narrow(1, 0, 9), {9, 4}, &copies);
  for (int64_t t = 9; t + 1 < kLength; ++t) {
    used.clear();
    const auto expected = on_cpu.step(symbols.select(1, t), &used);
    copies = given(used);
    const auto found = on_gpu.step(symbols.select(1, t), &copies);
    ASSERT_LE(difference(found.cpu(), expected),
              kRounding * expected.abs().max().item<double>())
        << "symbol " << t;
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
  const auto trained = placement_on(kFloat32.device, "bfloat16");
  const auto used = placement_for_use(kFloat32.device, "bfloat16");
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
  const auto symbols = random_symbols(2, kLength);
  EXPECT_TRUE(whole_pass(small, symbols).equal(whole_pass(large, symbols)));
}

TEST(CudaDecoder, RowsAreTheSameBitsAloneAndAmongOthers) {
  auto config = small_config("lsh,local,full");
  config.lsh.local_window = 4;
  config.train.length = 400;
  Placement half(at::Device(at::kCUDA, 0), at::kBFloat16);
  const LanguageModel model(config, half);
  const auto symbols = random_symbols(2, 340);
  // The prompts' passes may round otherwise; steps from the start do not.
  Decoder both(model, 2);
  Decoder alone(model, 2);
  both.read(symbols.narrow(1, 0, 0), {0, 0});
  alone.read(symbols.narrow(1, 0, 0), {0, 0});
  for (int64_t t = 0; t < 339; ++t) {
    auto others = symbols.select(1, t).clone();
    others[1] = (others[1] + 1) % kVocabulary;
    const auto a = both.step(symbols.select(1, t));
    const auto b = alone.step(others);
    ASSERT_TRUE(a[0].equal(b[0])) << t;
    ASSERT_FALSE(a[1].equal(b[1])) << t;
  }
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
  const auto symbols = random_symbols(1, kLength);
  Decoder decoder(model);
  EXPECT_THROW(decoder.step(symbols.select(1, 0)), Error);  // nothing read
  EXPECT_THROW(decoder.read(symbols.cuda(), {3}), Error);   // would wait
  decoder.read(symbols, {kLength - 2});
  decoder.step(symbols.select(1, kLength - 2));
  EXPECT_THROW(decoder.step(symbols.select(1, kLength - 1)), Error);
}

}  // namespace
}  // namespace reformer
