#include "reformer/generate/beam_cache.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "tests/generate/beam_cache_checks.h"

namespace reformer {
namespace {

using namespace decoding;

const at::Device kGpu(at::kCUDA, 0);

TEST(CudaBeamCache, HypothesesAreWhatTheirWholeTextsWouldBe) {
  for (const char* kind : {"full", "full_shared_qk", "local"}) {
    const LanguageModel model(small_config(kind), Placement(kGpu, at::kFloat));
    EXPECT_LT(largest_difference(model, 70), 1e-4) << kind;
  }
}

TEST(CudaBeamCache, InBfloat16ToItsRounding) {
  for (const char* kind : {"full", "local"}) {
    const LanguageModel model(small_config(kind),
                              Placement(kGpu, at::kBFloat16));
    EXPECT_LT(largest_difference(model, 40), 0.1) << kind;
  }
}

// With the CPU's buckets: one that flips by rounding would change what is seen.
TEST(CudaBeamCache, LshSeesWhatTheCpuSees) {
  auto config = small_config("lsh");
  config.lsh.rounds = 3;
  config.lsh.chunk_length = 3;
  config.lsh.local_window = 5;
  config.train.length = 600;  // more than a block's threads
  const LanguageModel on_cpu(config);
  const LanguageModel on_gpu(config, Placement(kGpu, at::kFloat));
  BeamWalk cpu(on_cpu, 4);
  BeamWalk gpu(on_gpu, 4);
  double largest = 0;
  for (int64_t t = 0; t < 600; ++t) {
    const std::vector<int64_t> parents = {3, 0, 0, 2};
    const std::vector<int64_t> tokens = {t % 7, t % 5, t % 3, t % 11};
    std::vector<at::Tensor> buckets;
    const auto expected = cpu.step(parents, tokens, &buckets);
    for (auto& of_layer : buckets) of_layer = of_layer.to(kGpu);
    largest = std::max(
        largest,
        difference(expected, gpu.step(parents, tokens, &buckets).cpu()));
  }
  EXPECT_LT(largest, 1e-3);
}

// Long enough for several parts, which are put together.
TEST(CudaBeamCache, SourcesOfAnyLengthAreAttendedTo) {
  for (const int64_t length : {1, 50, 1024, 1025, 5000}) {
    const auto k = at::randn({3, 2, length, 24});
    const auto v = at::randn({3, 2, length, 24});
    const auto q = at::randn({5, 2, 1, 24}) * 3;
    const auto sentences = at::tensor({2, 0, 0, 1, 2}, at::kInt);
    const auto shorter = static_cast<int32_t>((length + 1) / 2);
    const auto whole = static_cast<int32_t>(length);
    const auto lengths =
        at::tensor({whole, shorter, shorter, 1, whole}, at::kInt);
    const auto expected =
        attend_source(q, {{}, k, v}, {sentences, lengths, length});
    const auto there = [](const at::Tensor& x) { return x.to(kGpu); };
    const auto found =
        attend_source(there(q), {{}, there(k), there(v)},
                      {there(sentences), there(lengths), length});
    EXPECT_LT(difference(found.cpu(), expected), 1e-5) << length;
    const auto half = [&](const at::Tensor& x) {
      return there(x).to(at::kBFloat16);
    };
    const auto rounded =
        attend_source(half(q), {{}, half(k), half(v)},
                      {there(sentences), there(lengths), length});
    EXPECT_LT(difference(rounded.to(at::kFloat).cpu(), expected), 0.06)
        << length;
  }
}

}  // namespace
}  // namespace reformer
