// The whole model on a GPU: it learns as on the CPU, in float32 and in
// bfloat16.
#include "reformer/train/learner.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reformer/core/philox.h"
#include "reformer/ops/device.h"
#include "reformer/train/trainer.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);

Config small_config(const std::string& attention = "lsh") {
  Config config;
  config.task.name = "duplication";  // which allows a small vocabulary
  config.task.symbols = 31;
  config.model.layers = 2;
  config.model.d_model = 128;
  config.model.d_ff = 256;
  config.model.heads = 2;
  config.model.vocabulary = 32;
  config.model.dropout = 0.1;
  config.model.attention = attention;
  config.lsh.rounds = 2;
  config.lsh.chunk_length = 32;
  config.lsh.local_window = 16;
  config.train.batch = 2;
  config.train.length = 500;
  config.train.clip = 1;
  return config;
}

// A text with something to learn: the next symbol is one of two that the last
// two determine.
Batch markov_text(const Config& config, uint32_t index) {
  const int64_t rows = config.train.batch;
  const int64_t length = config.train.length;
  auto symbols = at::empty({rows, length}, at::kLong);
  int64_t* data = symbols.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < rows * length; ++i) {
    const auto bits =
        philox({7, 0}, {static_cast<uint32_t>(i), index, 0, 0})[0];
    const int64_t before = i > 1 ? data[i - 1] * 5 + data[i - 2] * 11 : i;
    data[i] = (before + (bits % 4 == 0 ? 3 : 1)) % config.model.vocabulary;
  }
  return {symbols, at::ones({rows, length}, at::kBool)};
}

std::vector<double> losses(Learner& learner, const Config& config, int steps) {
  std::vector<double> losses;
  for (int step = 1; step <= steps; ++step) {
    const auto gradients = learner.gradients(
        {markov_text(config, static_cast<uint32_t>(step))}, step);
    learner.apply(step);
    losses.push_back(gradients.read().sums.mean_loss());
  }
  return losses;
}

class CudaLearner : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_is_available()) GTEST_SKIP() << why_cuda_is_unavailable();
  }
};

TEST_F(CudaLearner, TakesTheCpusStepsInFloat32) {
  for (const std::string attention :
       {"lsh", "local", "full_shared_qk", "full"}) {
    for (const std::string optimizer : {"adamw", "adafactor"}) {
      auto config = small_config(attention);
      config.train.optimizer = optimizer;
      config.train.learning_rate = optimizer == "adamw" ? 1e-3 : 1e-2;
      Learner here(config);
      Learner there(config, {kGpu, at::kFloat});
      const auto expected = losses(here, config, 5);
      const auto found = losses(there, config, 5);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], 2e-4 * expected[i])
            << attention << ", " << optimizer << ", step " << i + 1;
      }
    }
  }
}

TEST_F(CudaLearner, LearnsInBfloat16AsInFloat32) {
  const auto config = small_config();
  Learner exact(config, {kGpu, at::kFloat});
  Learner rounded(config, {kGpu, at::kBFloat16});
  constexpr int kSteps = 200;
  constexpr int kMean = 20;  // steps
  const auto expected = losses(exact, config, kSteps);
  const auto found = losses(rounded, config, kSteps);
  EXPECT_LT(expected.back(), 0.8 * expected.front());  // it does learn
  for (int first = 0; first < kSteps; first += kMean) {
    double sum = 0;
    double sum_expected = 0;
    for (int i = first; i < first + kMean; ++i) {
      sum += found[static_cast<size_t>(i)];
      sum_expected += expected[static_cast<size_t>(i)];
    }
    EXPECT_NEAR(sum / sum_expected, 1, 0.01) << "from step " << first + 1;
  }
}

TEST_F(CudaLearner, TakesTheSameStepsTwiceBitForBit) {
  const auto config = small_config();
  Learner once(config, {kGpu, at::kBFloat16});
  Learner again(config, {kGpu, at::kBFloat16});
  EXPECT_EQ(losses(once, config, 10), losses(again, config, 10));
  for (size_t i = 0; i < once.model().parameters().size(); ++i) {
    EXPECT_TRUE(at::equal(once.model().parameters()[i].value,
                          again.model().parameters()[i].value))
        << once.model().parameters()[i].name;
  }
}

TEST_F(CudaLearner, AModelEvaluatesOnEitherDevice) {
  const auto config = small_config();
  Learner learner(config, {kGpu, at::kFloat});
  losses(learner, config, 20);
  std::vector<NamedTensor> parameters;
  for (const auto& parameter : learner.model().parameters()) {
    parameters.push_back({parameter.name, parameter.value.detach().cpu()});
  }
  LanguageModel here(config);
  load_parameters(here, parameters);
  const auto batch = markov_text(config, 1000);
  const Pass pass{0, 0, /*training=*/false, 0};
  const double expected =
      here.evaluate(batch.symbols, batch.weights, pass).mean_loss();
  const double found =
      learner.model().evaluate(batch.symbols, batch.weights, pass).mean_loss();
  EXPECT_NEAR(found, expected, 1e-4 * expected);
}

TEST_F(CudaLearner, ReversibleGradientsEqualStoredOnes) {
  auto config = small_config();
  Learner rebuilt(config, {kGpu, at::kFloat});
  config.model.block = "stored";
  Learner stored(config, {kGpu, at::kFloat});
  const auto batch = markov_text(config, 3);
  rebuilt.gradients({batch}, 1);
  stored.gradients({batch}, 1);
  for (size_t i = 0; i < stored.model().parameters().size(); ++i) {
    const auto& expected = stored.model().parameters()[i];
    const auto& found = rebuilt.model().parameters()[i];
    const double error =
        (found.gradient - expected.gradient).abs().max().item<double>();
    const double largest = expected.gradient.abs().max().item<double>();
    EXPECT_LE(error, 1e-4 * largest + 1e-7) << expected.name;
  }
}

}  // namespace
}  // namespace reformer
