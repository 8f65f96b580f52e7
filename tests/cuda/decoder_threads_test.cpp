// Recordings and decoders of several threads and streams on one GPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "reformer/device/cuda_graph.h"
#include "reformer/device/device.h"
#include "reformer/generate/bucket_history.h"
#include "tests/generate/decoder_checks.h"

namespace reformer {
namespace {

using namespace decoding;

const at::Device kGpu(at::kCUDA, 0);

// Two captures that share memory, as those of one thread share what LibTorch
// gives to products of matrices: each writes its number there, is busy for a
// while, and reads it back.
TEST(CudaDeviceGraph, RecordingsOfOneThreadRunOneAfterTheOtherOnAnyStreams) {
  const auto options = at::TensorOptions(kGpu);
  auto shared = at::zeros({1 << 20}, options);
  const auto matrix = at::full({2048, 2048}, 1e-3, options);
  std::vector<at::Tensor> found{at::zeros_like(shared), at::zeros_like(shared)};
  const auto work = [&](int number) {
    shared.fill_(number + 1);
    auto busy = matrix;
    for (int i = 0; i < 20; ++i) busy = at::matmul(busy, matrix);
    found[number].copy_(shared);
  };
  work(0);
  std::vector<std::unique_ptr<CudaGraph>> graphs;
  for (const int number : {0, 1}) {
    graphs.push_back(std::make_unique<CudaGraph>(kGpu));
    graphs.back()->capture([&] { work(number); });
  }
  const std::vector<SideStream> streams{SideStream(kGpu), SideStream(kGpu)};
  synchronize(kGpu);
  for (int replay = 0; replay < 5; ++replay) {
    for (const int number : {0, 1}) {
      found[number].zero_();
      synchronize(kGpu);
    }
    for (const int number : {0, 1}) {
      streams[number].run([&] { graphs[number]->replay(); });
    }
    synchronize(kGpu);
    for (const int number : {0, 1}) {
      EXPECT_EQ(found[number].min().item<float>(), number + 1) << replay;
      EXPECT_EQ(found[number].max().item<float>(), number + 1) << replay;
    }
  }
}

// Logits of every step after a short prompt; on a stream of its own.
at::Tensor decoded(const LanguageModel& model, const at::Tensor& tokens) {
  Decoder decoder(model, tokens.size(0));
  const std::vector<int64_t> lengths(tokens.size(0), 3);
  std::vector<at::Tensor> logits = {
      decoder.prefill(tokens.narrow(1, 0, 3), lengths)};
  for (int64_t t = 3; t + 1 < tokens.size(1); ++t) {
    logits.push_back(decoder.step(tokens.select(1, t)));
  }
  EXPECT_TRUE(decoder.captured());
  return at::stack(logits, 1).cpu();
}

TEST(CudaDecoder, ThreadsWithADecoderEachGetWhatOneAloneGets) {
  auto config = small_config("lsh");
  config.model.d_model = 256;
  config.model.heads = 2;
  const LanguageModel model(config, Placement(kGpu, at::kFloat));
  const auto tokens = random_tokens(12, kLength);
  const auto part = [&](int64_t i) { return tokens.narrow(0, 3 * i, 3); };
  std::vector<at::Tensor> alone;
  for (int64_t i = 0; i < 4; ++i) alone.push_back(decoded(model, part(i)));
  for (int replay = 0; replay < 3; ++replay) {
    std::vector<at::Tensor> together(alone.size());
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        SideStream(kGpu).run([&] { together[i] = decoded(model, part(i)); });
      });
    }
    for (auto& thread : threads) thread.join();
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(together[i].equal(alone[i])) << "thread " << i;
    }
  }
}

TEST(CudaDecoder, RefusesBucketsOutOfRangeAndGoesOnAsIfNothingHappened) {
  const LanguageModel model(small_config("lsh"), Placement(kGpu, at::kFloat));
  expect_refusal_changes_nothing(model);
}

// What no check looks at counts as the last bucket.
TEST(CudaBucketHistory, WritesNothingOutsideForBucketsOutOfRange) {
  constexpr int64_t kBuckets = 6;
  BucketHistory members({1, 1, 1, kBuckets, 4}, kGpu);
  const auto ids =
      at::full({1, 1, 1, 100}, 60000, at::kInt).to(at::kUInt16).to(kGpu);
  members.append(ids, {0}, {100});
  synchronize(kGpu);
  std::vector<int32_t> counts(kBuckets);
  ASSERT_EQ(cudaMemcpy(counts.data(), members.history().counts,
                       counts.size() * sizeof(int32_t), cudaMemcpyDefault),
            cudaSuccess);
  EXPECT_EQ(counts, (std::vector<int32_t>{0, 0, 0, 0, 0, 100}));
}

}  // namespace
}  // namespace reformer
