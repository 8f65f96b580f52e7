// The whole model on a GPU: it learns as on the CPU, in float32 and in
// bfloat16.
#include "reformer/train/learner.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reformer/base/philox.h"
#include "reformer/device/device.h"
#include "reformer/train/trainer.h"
#include "tests/cuda/no_more_memory.h"
#include "tests/model/autograd_step.h"
#include "tests/support/duplication_config.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);

Config small_config(const std::string& attention = "lsh") {
  Config config = duplication_config(32, 128, 256, 500);
  config.model.dropout = 0.1;
  config.model.attention = attention;
  config.lsh.chunk_length = 32;
  config.lsh.local_window = 16;
  config.train.clip = 1;
  return config;
}

// A text with something to learn: the next token is one of two that the last
// two determine.
Batch markov_text(const Config& config, uint32_t index) {
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

void expect_equal_parameters(Learner& one, Learner& other) {
  for (size_t i = 0; i < one.model().parameters().size(); ++i) {
    EXPECT_TRUE(at::equal(one.model().parameters()[i].value,
                          other.model().parameters()[i].value))
        << one.model().parameters()[i].name;
  }
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

// Embeddings and rounds of n-grams, heads that do not hash, short convolutions.
Config config_of_ngrams() {
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

TEST_F(CudaLearner, TakesTheCpusStepsOfNgramsAndNearHeads) {
  for (const LocalHeads local : {LocalHeads::kAll, LocalHeads::kOther}) {
    auto config = config_of_ngrams();
    config.lsh.local_heads = local;
    config.train.optimizer = "adamw";
    config.train.learning_rate = 1e-3;
    Learner here(config);
    Learner there(config, {kGpu, at::kFloat});
    const auto expected = losses(here, config, 5);
    const auto found = losses(there, config, 5);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 2e-4 * expected[i]) << i + 1;
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

// Generating has kernels of its own for up to 8 rows. A step must not: what
// they add to a stream the library's products would not take away again.
TEST_F(CudaLearner, ComputesFewRowsByTheProductsThatUndoThem) {
  for (const int64_t length : {4, 8, 10}) {
    auto config = small_config();
    config.model.dropout = 0;
    config.train.batch = 1;
    config.train.length = length;
    const auto batch = markov_text(config, 1);
    const auto loss = [&](const std::string& block) {
      config.model.block = block;
      LanguageModel model(config, {kGpu, at::kBFloat16});
      return model.train(batch.tokens, batch.loss_mask, {1, 1, true, 0}, 1)
          .loss;
    };
    EXPECT_EQ(loss("reversible"), loss("stored")) << length;
  }
}

// The logits of a step, of a whole text and of a token are sums in float32.
TEST_F(CudaLearner, RoundsNoLogits) {
  auto config = small_config("local");
  config.model.dropout = 0;
  LanguageModel model(config, {kGpu, at::kBFloat16});
  const auto batch = markov_text(config, 1);
  const Pass pass{};
  const auto logits = model.logits(batch.tokens, pass);
  const auto rounded = logits.to(at::kBFloat16).to(at::kFloat);
  EXPECT_GT(logits.ne(rounded).sum().item<int64_t>(), logits.numel() / 2);
  const double sum =
      model.losses(batch.tokens, pass).sum(at::kDouble).item<double>();
  EXPECT_NEAR(model.train(batch.tokens, batch.loss_mask, pass, 1).loss, sum,
              1e-6 * sum);
  EXPECT_NEAR(model.evaluate(batch.tokens, batch.loss_mask, pass).loss, sum,
              1e-6 * sum);
}

// Its directions are of bfloat16 there.
TEST_F(CudaLearner, LearnsByMuonAsOnTheCpu) {
  auto config = small_config();
  config.train.optimizer = "muon";
  Learner here(config);
  Learner there(config, {kGpu, at::kFloat});
  constexpr int kSteps = 30;
  const auto expected = losses(here, config, kSteps);
  const auto found = losses(there, config, kSteps);
  EXPECT_LT(expected.back(), 0.95 * expected.front());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 0.01 * expected[i]) << i + 1;
  }
}

TEST_F(CudaLearner, TakesTheSameStepsTwiceBitForBit) {
  const auto config = small_config();
  Learner once(config, {kGpu, at::kBFloat16});
  Learner again(config, {kGpu, at::kBFloat16});
  EXPECT_EQ(losses(once, config, 10), losses(again, config, 10));
  expect_equal_parameters(once, again);
}

// Hashes, dropout and data differ from step to step: a replayed step that took
// any of them from the captured one would be found out by the next loss.
void expect_replayed_equals_computed(Config config, const std::string& name) {
  config.train.cuda_graph = "off";
  Learner computed(config, {kGpu, at::kBFloat16});
  config.train.cuda_graph = "on";
  Learner replayed(config, {kGpu, at::kBFloat16});
  EXPECT_EQ(losses(computed, config, 12), losses(replayed, config, 12)) << name;
  expect_equal_parameters(computed, replayed);
  EXPECT_TRUE(replayed.captured());
  EXPECT_FALSE(computed.captured());
}

TEST_F(CudaLearner, ReplaysCapturedStepsBitForBit) {
  for (const std::string attention : {"lsh", "local", "full_shared_qk"}) {
    for (const std::string positions :
         {"learned", "sinusoid", "axial", "rotary"}) {
      auto config = small_config(attention);
      config.model.positions = positions;
      config.model.successor_fraction = 0.5;
      config.model.axial_shape = {25, 20};
      config.model.axial_dims = {64, 64};
      expect_replayed_equals_computed(config, attention + ", " + positions);
    }
  }
}

TEST_F(CudaLearner, ReplaysCapturedStepsOfNgramsBitForBit) {
  expect_replayed_equals_computed(config_of_ngrams(), "n-grams");
}

TEST_F(CudaLearner, ReplaysCapturedStepsOfEveryBlockBitForBit) {
  for (const std::string block : {"stored", "residual"}) {
    for (const std::string activation : {"gelu", "relu"}) {
      auto config = small_config();
      config.model.block = block;
      config.model.activation = activation;
      expect_replayed_equals_computed(config, block + ", " + activation);
    }
  }
}

TEST_F(CudaLearner, RecordsFullAttentionToo) {  // LibTorch's
  auto config = small_config("full");
  config.train.cuda_graph = "off";
  Learner computed(config, {kGpu, at::kBFloat16});
  config.train.cuda_graph = "on";
  Learner replayed(config, {kGpu, at::kBFloat16});
  const auto expected = losses(computed, config, 12);
  const auto found = losses(replayed, config, 12);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 2e-3 * expected[i]) << i + 1;
  }
}

TEST_F(CudaLearner, ComputesWhatDoesNotFitTheRecording) {
  auto config = small_config();
  config.train.cuda_graph = "off";
  Learner computed(config, {kGpu, at::kBFloat16});
  config.train.cuda_graph = "on";
  Learner replayed(config, {kGpu, at::kBFloat16});
  const auto some_losses = [&](Learner& learner) {
    std::vector<double> found;
    for (int step = 1; step <= 12; ++step) {
      auto batch = markov_text(config, static_cast<uint32_t>(step));
      if (step % 5 == 0) {  // after the capture: shorter
        batch.tokens = batch.tokens.narrow(1, 0, 300).contiguous();
        batch.loss_mask = batch.loss_mask.narrow(1, 0, 300).contiguous();
      }
      if (step % 7 == 0) batch.loss_mask.narrow(1, 0, 50).fill_(false);
      found.push_back(learner.gradients({batch}, step).read().sums.mean_loss());
      learner.apply(step);
    }
    return found;
  };
  EXPECT_EQ(some_losses(computed), some_losses(replayed));
  expect_equal_parameters(computed, replayed);
}

TEST_F(CudaLearner, GoesOnWithoutARecordingWhereMemoryIsShort) {
  auto config = small_config();
  config.model.block = "stored";
  config.train.cuda_graph = "off";
  Learner computed(config, {kGpu, at::kBFloat16});
  const auto expected = losses(computed, config, 6);
  config.train.cuda_graph = "auto";
  Learner learner(config, {kGpu, at::kBFloat16});
  config.train.cuda_graph = "on";
  Learner insisting(config, {kGpu, at::kBFloat16});
  const NoMoreMemory taken(kGpu);
  EXPECT_EQ(losses(learner, config, 6), expected);
  expect_equal_parameters(computed, learner);
  EXPECT_THROW(losses(insisting, config, 6), c10::Error);
}

// The numbers of a step are read while later steps run, from memory that they
// write anew.
TEST_F(CudaLearner, NumbersOfAStepOutliveTheNextSteps) {
  const auto config = small_config();
  Learner at_once(config, {kGpu, at::kBFloat16});
  Learner late(config, {kGpu, at::kBFloat16});
  const auto expected = losses(at_once, config, 8);
  std::vector<StepGradients> steps;
  for (int step = 1; step <= 8; ++step) {
    steps.push_back(late.gradients(
        {markov_text(config, static_cast<uint32_t>(step))}, step));
    late.apply(step);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].read().sums.mean_loss(), expected[i]) << i + 1;
  }
}

// Streams that overtake each other would be found out here: blocks are small,
// and nothing waits between steps.
TEST_F(CudaLearner, ParametersOnTheHostEqualResidentOnesBitForBit) {
  for (const double clip : {0.0, 0.5}) {
    for (const int64_t accumulate : {1, 2}) {
      for (const std::string optimizer : {"adafactor", "adamw", "muon"}) {
        auto config = small_config();
        config.model.layers = 6;
        config.train.optimizer = optimizer;
        config.train.clip = clip;
        config.train.accumulate = accumulate;
        config.train.cuda_graph = "off";
        Learner resident(config, {kGpu, at::kBFloat16});
        config.train.offload = true;
        Learner visiting(config, {kGpu, at::kBFloat16});
        const auto numbers = [&](Learner& learner) {
          std::vector<StepGradients> steps;
          for (int step = 1; step <= 10; ++step) {
            std::vector<Batch> batches;
            for (int64_t i = 0; i < accumulate; ++i) {
              batches.push_back(
                  markov_text(config, static_cast<uint32_t>(step * 10 + i)));
            }
            steps.push_back(learner.gradients(batches, step));
            learner.apply(step);
          }
          std::vector<double> found;
          for (const auto& step : steps) {
            found.push_back(step.read().sums.loss);
            found.push_back(step.read().norm);
          }
          learner.synchronize();
          return found;
        };
        EXPECT_EQ(numbers(resident), numbers(visiting))
            << optimizer << ", clip " << clip << ", " << accumulate;
        for (size_t i = 0; i < resident.model().parameters().size(); ++i) {
          const auto& expected = resident.model().parameters()[i];
          const auto& found = visiting.model().parameters()[i];
          EXPECT_EQ(found.value.is_cpu(), block_of(found.name) >= 0);
          EXPECT_TRUE(at::equal(expected.value.cpu(), found.value.cpu()))
              << expected.name;
        }
      }
    }
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
      here.evaluate(batch.tokens, batch.loss_mask, pass).mean_loss();
  const double found = learner.model().evaluate(batch, pass).mean_loss();
  EXPECT_NEAR(found, expected, 1e-4 * expected);
}

std::vector<at::Tensor> gradients_of(Learner& learner, const Batch& batch) {
  learner.gradients({batch}, 1).read();
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : learner.model().parameters()) {
    gradients.push_back(parameter.gradient().to(at::kDouble));
  }
  return gradients;
}

std::vector<at::Tensor> autograds(const LanguageModel& model,
                                  const Batch& batch, const Pass& pass) {
  auto gradients = autograd_gradients(model, batch.tokens, pass,
                                      1.0 / double(batch.tokens.numel()));
  for (auto& gradient : gradients) gradient = gradient.to(at::kDouble);
  return gradients;
}

TEST_F(CudaLearner, GradientsAreAutogradsForEveryBlock) {
  for (const char* block : {"reversible", "stored", "residual"}) {
    auto config = small_config();
    config.model.block = block;
    config.train.clip = 0;
    Learner learner(config, {kGpu, at::kFloat});
    const auto batch = markov_text(config, 3);
    const auto expected =
        autograds(learner.language_model(), batch, learner.pass(1));
    const auto found = gradients_of(learner, batch);
    for (size_t i = 0; i < expected.size(); ++i) {
      const double error = (found[i] - expected[i]).abs().max().item<double>();
      const double largest = expected[i].abs().max().item<double>();
      EXPECT_LE(error, 1e-4 * largest + 1e-7)
          << block << ", " << learner.model().parameters()[i].name;
    }
  }
}

// Where numbers are rounded, other kernels run than in float32. Judged as fast
// code is: twice the error of autograd in the same precision.
TEST_F(CudaLearner, RoundedGradientsAreAsExactAsAutogradsForEveryBlock) {
  for (const char* block : {"reversible", "stored", "residual"}) {
    for (const double dropout : {0.0, 0.1}) {
      auto config = small_config("local");  // no buckets that rounding changes
      config.model.block = block;
      config.model.dropout = dropout;
      config.train.clip = 0;
      const auto batch = markov_text(config, 3);
      Learner learner(config, {kGpu, at::kBFloat16});
      const LanguageModel wide(config, {kGpu, at::kFloat});
      const auto exact = autograds(wide, batch, learner.pass(1));
      const auto plain =
          autograds(learner.language_model(), batch, learner.pass(1));
      const auto found = gradients_of(learner, batch);
      for (size_t i = 0; i < exact.size(); ++i) {
        const auto error = [&](const at::Tensor& x) {
          return ((x - exact[i]).norm() / exact[i].norm()).item<double>();
        };
        EXPECT_LE(error(found[i]), 2 * error(plain[i]) + 0x1p-8)
            << block << ", " << wide.parameters()[i].name << ", dropout "
            << dropout;
      }
    }
  }
}

// Where both fit, one may be chosen for its memory and the other for its speed.
TEST_F(CudaLearner, StoredActivationsAreTheReversibleFunctionToTheBit) {
  for (const char* attention : {"lsh", "local", "full_shared_qk", "full"}) {
    for (const double dropout : {0.0, 0.1}) {
      auto config = small_config(attention);
      config.model.dropout = dropout;
      const auto batch = markov_text(config, 3);
      const auto output = [&](const char* block) {
        config.model.block = block;
        Learner learner(config, {kGpu, at::kBFloat16});
        auto& model = learner.language_model();
        const auto tokens = batch.tokens.to(kGpu);
        const at::NoGradGuard no_grad;
        const auto x = model.embed(tokens, 0, tokens.size(1));
        return model.stack().forward({x.clone(), x.clone()}, learner.pass(1));
      };
      const auto rebuilt = output("reversible");
      const auto stored = output("stored");
      EXPECT_TRUE(at::equal(rebuilt.x1, stored.x1)) << attention;
      EXPECT_TRUE(at::equal(rebuilt.x2, stored.x2)) << attention;
    }
  }
}

}  // namespace
}  // namespace reformer
