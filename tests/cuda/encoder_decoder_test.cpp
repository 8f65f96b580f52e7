// The encoder-decoder on a GPU: it learns as on the CPU, reversible and not, in
// float32 and in bfloat16, with padding, and repeats itself bit for bit.
#include "reformer/model/encoder_decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>

#include "reformer/base/philox.h"
#include "reformer/device/device.h"
#include "reformer/ops/full_attention.h"
#include "reformer/train/learner.h"
#include "tests/model/autograd_step.h"
#include "tests/support/cases.h"
#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);

Config translation_config(const std::string& attention = "full",
                          const std::string& encoder_attention = "full") {
  Config config;
  config.task.name = "none";
  config.model.layers = 3;
  config.model.encoder_layers = 2;
  config.model.attention = attention;
  config.model.encoder_attention = encoder_attention;
  config.model.d_model = 128;
  config.model.d_ff = 256;
  config.model.heads = 2;
  config.model.vocabulary = 40;
  config.model.positions = "sinusoid";
  config.model.dropout = 0.1;
  config.model.share_embeddings = true;
  config.lsh.rounds = 2;
  config.lsh.chunk_length = 16;
  config.lsh.n_buckets = 4;
  config.lsh.window = Window::kTrailing;
  config.train.batch = 16;
  config.train.length = 64;
  config.train.label_smoothing = 0.1;
  config.train.clip = 1;
  return config;
}

// The target is the source backwards, each word another; rows of different
// lengths, all of them another with every index.
Batch reversal(const Config& config, uint32_t index) {
  const int64_t rows = config.train.batch;
  const int64_t longest = 20 + index % 5;
  const int64_t words = config.model.vocabulary - 1;
  Batch batch;
  batch.source = at::empty({rows, longest}, at::kLong);
  batch.tokens = at::empty({rows, longest + 1}, at::kLong);
  batch.source_mask = at::empty({rows, longest}, at::kBool);
  batch.loss_mask = at::empty({rows, longest + 1}, at::kBool);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t length = longest - row % 7;
    for (int64_t i = 0; i <= longest; ++i) {
      const auto word = [&](int64_t at) {
        return int64_t(
            1 +
            philox({3, index}, {uint32_t(row), uint32_t(at), 0, 0})[0] % words);
      };
      batch.tokens[row][i] =
          i < length ? 1 + (word(length - 1 - i) * 7) % words : 0;
      batch.loss_mask[row][i] = i <= length;
      if (i == longest) continue;
      batch.source[row][i] = i < length ? word(i) : 0;
      batch.source_mask[row][i] = i < length;
    }
  }
  return batch;
}

std::vector<double> losses(Learner& learner, const Config& config, int steps) {
  std::vector<double> losses;
  for (int step = 1; step <= steps; ++step) {
    const auto gradients = learner.gradients(
        {reversal(config, static_cast<uint32_t>(step))}, step);
    learner.apply(step);
    losses.push_back(gradients.read().sums.mean_loss());
  }
  return losses;
}

class CudaEncoderDecoder : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_is_available()) GTEST_SKIP() << why_cuda_is_unavailable();
  }
};

TEST_F(CudaEncoderDecoder, TakesTheCpusStepsInFloat32) {
  for (const auto* block : {"reversible", "stored", "residual"}) {
    for (const auto* encoder : {"full", "lsh", "local,full_shared_qk"}) {
      auto config = translation_config("full,lsh", encoder);
      config.model.block = block;
      Learner here(config);
      Learner there(config, {kGpu, at::kFloat});
      const auto expected = losses(here, config, 5);
      const auto found = losses(there, config, 5);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], 2e-4 * expected[i])
            << block << ", " << encoder << ", step " << i + 1;
      }
    }
  }
}

TEST_F(CudaEncoderDecoder, LearnsInBfloat16AsInFloat32) {
  auto config = translation_config();
  config.train.learning_rate = 1e-3;
  Learner exact(config, {kGpu, at::kFloat});
  Learner rounded(config, {kGpu, at::kBFloat16});
  const auto mean = [](const std::vector<double>& all) {
    double sum = 0;
    for (size_t i = all.size() - 20; i < all.size(); ++i) sum += all[i];
    return sum / 20;
  };
  const auto expected = losses(exact, config, 100);
  const auto found = losses(rounded, config, 100);
  EXPECT_LT(mean(expected), 0.9 * expected.front());  // it does learn
  EXPECT_NEAR(mean(found) / mean(expected), 1, 0.02);
}

TEST_F(CudaEncoderDecoder, TakesTheSameStepsTwiceBitForBit) {
  for (const auto* encoder : {"full", "lsh"}) {
    const auto config = translation_config("full,lsh", encoder);
    Learner once(config, {kGpu, at::kBFloat16});
    Learner again(config, {kGpu, at::kBFloat16});
    EXPECT_EQ(losses(once, config, 10), losses(again, config, 10));
    for (size_t i = 0; i < once.model().parameters().size(); ++i) {
      EXPECT_TRUE(at::equal(once.model().parameters()[i].value,
                            again.model().parameters()[i].value))
          << once.model().parameters()[i].name;
    }
  }
}

// Batches of one size are captured, of others computed as they come.
TEST_F(CudaEncoderDecoder, ReplaysCapturedStepsBitForBit) {
  auto config = translation_config();
  config.train.cuda_graph = "off";
  Learner computed(config, {kGpu, at::kBFloat16});
  config.train.cuda_graph = "on";
  Learner replayed(config, {kGpu, at::kBFloat16});
  const auto steps = [&](Learner& learner) {
    std::vector<double> found;
    for (int64_t step = 1; step <= 8; ++step) {
      // Index 0 of 5 always; one of another size between.
      const auto index = uint32_t(step == 6 ? 3 : 5 * step);
      const auto gradients = learner.gradients({reversal(config, index)}, step);
      learner.apply(step);
      found.push_back(gradients.read().sums.mean_loss());
    }
    return found;
  };
  EXPECT_EQ(steps(computed), steps(replayed));
  EXPECT_TRUE(replayed.captured());
}

TEST_F(CudaEncoderDecoder, OffloadedTakesTheResidentStepsBitForBit) {
  auto config = translation_config();
  Learner resident(config, {kGpu, at::kBFloat16});
  config.train.offload = true;
  Learner visiting(config, {kGpu, at::kBFloat16});
  EXPECT_EQ(losses(resident, config, 5), losses(visiting, config, 5));
}

TEST_F(CudaEncoderDecoder, WhatStandsInThePaddingIsNotRead) {
  for (const auto* encoder : {"full", "lsh"}) {
    const auto config = translation_config("full", encoder);
    EncoderDecoder model(config, {kGpu, at::kBFloat16});
    auto batch = reversal(config, 1);
    const Pass pass{1, 1, /*training=*/true, 0};
    const auto gradients = [&] {
      model.zero_gradients();
      read(model.add_gradients(batch, pass, 0.01));
      std::vector<at::Tensor> all;
      for (const auto& parameter : model.parameters()) {
        all.push_back(parameter.gradient().clone());
      }
      return all;
    };
    const auto before = gradients();
    batch.source = at::where(batch.source_mask, batch.source, 9);
    batch.tokens = at::where(batch.loss_mask, batch.tokens, 9);
    const auto after = gradients();
    for (size_t i = 0; i < before.size(); ++i) {
      const auto& name = model.parameters()[i].name;
      // A row of the embedding adds up its lookups in pieces: zeros of padding
      // among them move where the pieces begin, which rounds otherwise.
      const bool same = name == "embedding.weight"
                            ? at::allclose(before[i], after[i], 1e-5, 1e-7)
                            : at::equal(before[i], after[i]);
      EXPECT_TRUE(same) << encoder << " " << name;
    }
  }
}

TEST_F(CudaEncoderDecoder, GradientsAreAutogradsInFloat32) {
  for (const auto* block : {"reversible", "stored", "residual"}) {
    auto config = translation_config("full,lsh", "full,lsh");
    config.model.block = block;
    EncoderDecoder model(config, {kGpu, at::kFloat});
    const auto batch = reversal(config, 1);
    const Pass pass{1, 1, /*training=*/true, 0};
    const auto expected = autograd_gradients(model, batch, pass, 0.01);
    model.zero_gradients();
    model.add_gradients(batch, pass, 0.01);
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto& [name, value] = std::tie(model.parameters()[i].name,
                                           model.parameters()[i].gradient());
      const double error = (value - expected[i]).abs().max().item<double>();
      EXPECT_LE(error, 2e-3 * expected[i].abs().max().item<double>())
          << block << " " << name;
    }
  }
}

// Keys of another length, some of them padding.
TEST_F(CudaEncoderDecoder, CrossAttentionIsTheCpus) {
  for (const auto& [queries, keys] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {31, 30}, {30, 31}, {129, 1000}, {1000, 9}}) {
    for (const auto padding : {Padding::kNone, Padding::kRight}) {
      AttentionInputs inputs;
      inputs.q = normal({5, 2, queries, 64}, 1);
      inputs.k = normal({5, 2, keys, 64}, 2);
      inputs.v = normal({5, 2, keys, 64}, 3);
      inputs.d_output = normal({5, 2, queries, 64}, 4);
      inputs.mask = make_mask(padding, 5, keys);
      if (inputs.mask.defined()) inputs.mask.select(1, 0).fill_(true);
      const auto on = [&](at::Device device, at::ScalarType type) {
        AttentionInputs there = inputs.to(type);
        for (auto* x :
             {&there.q, &there.k, &there.v, &there.d_output, &there.mask}) {
          if (x->defined()) *x = x->to(device);
        }
        return answer(
            [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
              return AttentionResult{cross_attention(q, k, v, there.mask), {}};
            },
            there);
      };
      const auto exact = on(at::kCPU, at::kDouble);
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        const double most = type == at::kFloat ? 1e-4 : 3e-2;
        const auto found = on(kGpu, type);
        const auto again = on(kGpu, type);
        const auto expect_near = [&](const at::Tensor& a, const at::Tensor& b,
                                     const at::Tensor& reference) {
          EXPECT_TRUE(at::equal(a, b));
          EXPECT_LE(max_error(a.to(at::kCPU, at::kDouble), reference),
                    most * (1 + reference.abs().max().item<double>()))
              << queries << " " << keys << " " << at::toString(type);
        };
        expect_near(found.output, again.output, exact.output);
        expect_near(found.d_q, again.d_q, exact.d_q);
        expect_near(found.d_k, again.d_k, exact.d_k);
        expect_near(found.d_v, again.d_v, exact.d_v);
      }
    }
  }
}

}  // namespace
}  // namespace reformer
