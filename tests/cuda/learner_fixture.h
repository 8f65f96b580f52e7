// Models small enough to learn within a test, on the CPU and on a GPU.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reformer/base/philox.h"
#include "reformer/device/device.h"
#include "reformer/train/learner.h"
#include "tests/support/duplication_config.h"

namespace reformer {

class CudaLearner : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_is_available()) GTEST_SKIP() << why_cuda_is_unavailable();
  }

  static Config small_config(const std::string& attention = "lsh") {
    Config config = duplication_config(32, 128, 256, 500);
    config.model.dropout = 0.1;
    config.model.attention = attention;
    config.lsh.chunk_length = 32;
    config.lsh.local_window = 16;
    config.train.clip = 1;
    return config;
  }

  // Embeddings and rounds of n-grams, heads that do not hash, short
  // convolutions.
  static Config config_of_ngrams() {
    auto config = small_config();
    config.model.successor_fraction = 0.5;
    config.model.positions = "rotary";
    config.model.ngram_length = 3;
    config.model.ngram_rows = 37;
    config.lsh.hashed_heads = HashedHeads::kSuccessor;
    config.lsh.ngrams = {2, 5};
    config.model.short_convolution = 4;
    return config;
  }

  // A text with something to learn: the next token is one of two that the last
  // two determine.
  static Batch markov_text(const Config& config, uint32_t index) {
    const int64_t rows = config.train.batch;
    const int64_t length = config.train.length;
    auto tokens = at::empty({rows, length}, at::kLong);
    int64_t* data = tokens.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < rows * length; ++i) {
      const auto bits =
          philox({7, 0}, {static_cast<uint32_t>(i), index, 0, 0})[0];
      const int64_t before = i > 1 ? data[i - 1] * 5 + data[i - 2] * 11 : i;
      data[i] = (before + (bits % 4 == 0 ? 3 : 1)) % config.model.vocabulary;
    }
    return {tokens, at::ones({rows, length}, at::kBool)};
  }

  static std::vector<double> losses(Learner& learner, const Config& config,
                                    int steps) {
    std::vector<double> losses;
    for (int step = 1; step <= steps; ++step) {
      const auto gradients = learner.gradients(
          {markov_text(config, static_cast<uint32_t>(step))}, step);
      learner.apply(step);
      losses.push_back(gradients.read().sums.mean_loss());
    }
    return losses;
  }

  static void expect_equal_parameters(Learner& one, Learner& other) {
    for (size_t i = 0; i < one.model().parameters().size(); ++i) {
      EXPECT_TRUE(at::equal(one.model().parameters()[i].value,
                            other.model().parameters()[i].value))
          << one.model().parameters()[i].name;
    }
  }

  const at::Device gpu_{at::kCUDA, 0};
};

}  // namespace reformer
