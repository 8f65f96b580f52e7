// The whole model on a GPU: it learns as on the CPU, in float32 and in
// bfloat16.
#include "reformer/train/learner.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>

#include "reformer/train/trainer.h"
#include "tests/cuda/learner_fixture.h"

namespace reformer {
namespace {

TEST_F(CudaLearner, TakesTheCpusStepsInFloat32) {
  for (const std::string attention :
       {"lsh", "local", "full_shared_qk", "full"}) {
    for (const std::string optimizer : {"adamw", "adafactor"}) {
      auto config = small_config(attention);
      config.train.optimizer = optimizer;
      config.train.learning_rate = optimizer == "adamw" ? 1e-3 : 1e-2;
      Learner here(config);
      Learner there(config, {gpu_, at::kFloat});
      const auto expected = losses(here, config, 5);
      const auto found = losses(there, config, 5);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], 2e-4 * expected[i])
            << attention << ", " << optimizer << ", step " << i + 1;
      }
    }
  }
}

TEST_F(CudaLearner, TakesTheCpusStepsOfNgramsAndNearHeads) {
  for (const LocalHeads local : {LocalHeads::kAll, LocalHeads::kOther}) {
    auto config = config_of_ngrams();
    config.lsh.local_heads = local;
    config.train.optimizer = "adamw";
    config.train.learning_rate = 1e-3;
    Learner here(config);
    Learner there(config, {gpu_, at::kFloat});
    const auto expected = losses(here, config, 5);
    const auto found = losses(there, config, 5);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 2e-4 * expected[i]) << i + 1;
    }
  }
}

TEST_F(CudaLearner, LearnsInBfloat16AsInFloat32) {
  const auto config = small_config();
  Learner exact(config, {gpu_, at::kFloat});
  Learner rounded(config, {gpu_, at::kBFloat16});
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
// they add to a stream the library's matmuls would not take away again.
TEST_F(CudaLearner, ComputesFewRowsByTheMatmulsThatReverseThem) {
  for (const int64_t length : {4, 8, 10}) {
    auto config = small_config();
    config.model.dropout = 0;
    config.train.batch = 1;
    config.train.length = length;
    const auto batch = markov_text(config, 1);
    const auto loss = [&](const std::string& block) {
      config.model.block = block;
      LanguageModel model(config, {gpu_, at::kBFloat16});
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
  LanguageModel model(config, {gpu_, at::kBFloat16});
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
  Learner there(config, {gpu_, at::kFloat});
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
  Learner once(config, {gpu_, at::kBFloat16});
  Learner again(config, {gpu_, at::kBFloat16});
  EXPECT_EQ(losses(once, config, 10), losses(again, config, 10));
  expect_equal_parameters(once, again);
}

// The numbers of a step are read while later steps run, from memory that they
// write anew.
TEST_F(CudaLearner, NumbersOfAStepOutliveTheNextSteps) {
  const auto config = small_config();
  Learner at_once(config, {gpu_, at::kBFloat16});
  Learner late(config, {gpu_, at::kBFloat16});
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
        Learner resident(config, {gpu_, at::kBFloat16});
        config.train.offload = true;
        Learner visiting(config, {gpu_, at::kBFloat16});
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
  Learner learner(config, {gpu_, at::kFloat});
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

}  // namespace
}  // namespace reformer
