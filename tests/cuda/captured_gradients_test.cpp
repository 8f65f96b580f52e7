// Steps that are replayed as a CUDA graph are those that are computed, bit for
// bit.
#include "reformer/train/captured_gradients.h"

#include <c10/util/Exception.h>

#include "tests/cuda/learner_fixture.h"
#include "tests/cuda/no_more_memory.h"

namespace reformer {
namespace {

class CudaCapturedGradients : public CudaLearner {
 protected:
  // Hashes, dropout and data differ from step to step: a replayed step that
  // took any of them from the captured one would be found out by the next loss.
  void expect_replayed_equals_computed(Config config, const std::string& name) {
    config.train.cuda_graph = "off";
    Learner computed(config, {gpu_, at::kBFloat16});
    config.train.cuda_graph = "on";
    Learner replayed(config, {gpu_, at::kBFloat16});
    EXPECT_EQ(losses(computed, config, 12), losses(replayed, config, 12))
        << name;
    expect_equal_parameters(computed, replayed);
    EXPECT_TRUE(replayed.captured());
    EXPECT_FALSE(computed.captured());
  }
};

TEST_F(CudaCapturedGradients, ReplaysCapturedStepsBitForBit) {
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

TEST_F(CudaCapturedGradients, ReplaysCapturedStepsOfNgramsBitForBit) {
  expect_replayed_equals_computed(config_of_ngrams(), "n-grams");
}

TEST_F(CudaCapturedGradients, ReplaysCapturedStepsOfEveryBlockBitForBit) {
  for (const std::string block : {"stored", "residual"}) {
    for (const std::string activation : {"gelu", "relu"}) {
      auto config = small_config();
      config.model.block = block;
      config.model.activation = activation;
      expect_replayed_equals_computed(config, block + ", " + activation);
    }
  }
}

TEST_F(CudaCapturedGradients, CapturesFullAttentionToo) {  // LibTorch's
  auto config = small_config("full");
  config.train.cuda_graph = "off";
  Learner computed(config, {gpu_, at::kBFloat16});
  config.train.cuda_graph = "on";
  Learner replayed(config, {gpu_, at::kBFloat16});
  const auto expected = losses(computed, config, 12);
  const auto found = losses(replayed, config, 12);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 2e-3 * expected[i]) << i + 1;
  }
}

TEST_F(CudaCapturedGradients, ComputesWhatDoesNotFitTheGraph) {
  auto config = small_config();
  config.train.cuda_graph = "off";
  Learner computed(config, {gpu_, at::kBFloat16});
  config.train.cuda_graph = "on";
  Learner replayed(config, {gpu_, at::kBFloat16});
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

TEST_F(CudaCapturedGradients, GoesOnWithoutAGraphWhereMemoryIsShort) {
  auto config = small_config();
  config.model.block = "stored";
  config.train.cuda_graph = "off";
  Learner computed(config, {gpu_, at::kBFloat16});
  const auto expected = losses(computed, config, 6);
  config.train.cuda_graph = "auto";
  Learner learner(config, {gpu_, at::kBFloat16});
  config.train.cuda_graph = "on";
  Learner insisting(config, {gpu_, at::kBFloat16});
  const NoMoreMemory taken(gpu_);
  EXPECT_EQ(losses(learner, config, 6), expected);
  expect_equal_parameters(computed, learner);
  EXPECT_THROW(losses(insisting, config, 6), c10::Error);
}

}  // namespace
}  // namespace reformer
