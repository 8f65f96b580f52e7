// Training an encoder-decoder: what holds of a language model's steps, runs and
// offloaded parameters holds of its.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <functional>

#include "reformer/base/errors.h"
#include "reformer/base/philox.h"
#include "reformer/io/checkpoint.h"
#include "reformer/train/learner.h"
#include "reformer/train/trainer.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"
#include "tests/support/latest_checkpoint.h"

namespace reformer {
namespace {

constexpr int64_t kWords = 11;

Config reversal_config() {
  Config config;
  config.task.name = "none";
  config.model.layers = 2;
  config.model.encoder_layers = 3;
  config.model.attention = "full,lsh";
  config.model.d_model = 32;
  config.model.d_ff = 48;
  config.model.heads = 2;
  config.model.vocabulary = kWords + 1;
  config.model.positions = "sinusoid";
  config.model.dropout = 0.1;
  config.model.share_embeddings = true;
  config.lsh.rounds = 2;
  config.lsh.chunk_length = 4;
  config.lsh.n_buckets = 2;
  config.train.label_smoothing = 0.1;
  config.train.length = 16;
  config.train.batch = 5;
  config.train.steps = 6;
  config.train.log_every = 1;
  config.train.evaluate_batches = 2;
  config.train.learning_rate = 0.01;
  return config;
}

// The source backwards; batches and their rows are of different sizes.
class Reversals : public Task {
 public:
  explicit Reversals(std::function<void(int64_t)> tell = {})
      : tell_(std::move(tell)) {}

  Batch training_batch(int64_t index) const override {
    if (tell_) tell_(index);
    return batch_of(uint32_t(index), 3 + index % 3, 7 + index % 4);
  }
  int64_t evaluation_batches(Split) const override { return 3; }
  Batch evaluation_batch(Split, int64_t index) const override {
    return batch_of(uint32_t(1000 + index), 4, 9);
  }
  std::string metric_name() const override { return "loss"; }
  double metric_of(double loss) const override { return loss; }

 private:
  static Batch batch_of(uint32_t index, int64_t rows, int64_t longest) {
    Batch batch;
    batch.source = at::empty({rows, longest}, at::kLong);
    batch.tokens = at::empty({rows, longest}, at::kLong);
    batch.source_mask = at::empty({rows, longest}, at::kBool);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t length = longest - row;
      const auto word = [&](int64_t at) {
        const auto bits = philox({1, index}, {uint32_t(row), uint32_t(at)});
        return int64_t{1} + bits[0] % kWords;
      };
      for (int64_t i = 0; i < longest; ++i) {
        batch.source_mask[row][i] = i < length;
        batch.source[row][i] = i < length ? word(i) : 0;
        batch.tokens[row][i] = i < length ? word(length - 1 - i) : 0;
      }
    }
    batch.loss_mask = batch.source_mask.clone();
    return batch;
  }

  std::function<void(int64_t)> tell_;
};

std::vector<double> take_steps(Learner& learner, int64_t accumulate,
                               int64_t steps) {
  const Reversals task;
  std::vector<double> numbers;
  for (int64_t step = 1; step <= steps; ++step) {
    std::vector<Batch> batches;
    for (int64_t i = 0; i < accumulate; ++i) {
      batches.push_back(task.training_batch(step * accumulate + i));
    }
    const auto gradients = learner.gradients(batches, step);
    learner.apply(step);
    numbers.push_back(gradients.read().sums.loss);
    numbers.push_back(gradients.read().norm);
  }
  return numbers;
}

void expect_equal_parameters(Learner& one, Learner& other) {
  one.synchronize();
  other.synchronize();
  for (size_t i = 0; i < one.model().parameters().size(); ++i) {
    EXPECT_TRUE(at::equal(one.model().parameters()[i].value,
                          other.model().parameters()[i].value))
        << one.model().parameters()[i].name;
  }
}

TEST(TranslationTraining, OffloadedStepsEqualTheResidentOnesBitForBit) {
  for (const auto* optimizer : {"adam", "adafactor", "muon"}) {
    for (const int64_t accumulate : {1, 2}) {
      for (const double clip : {0.0, 0.5}) {
        SCOPED_TRACE(std::string(optimizer) + ", " +
                     std::to_string(accumulate) + " batches, clip " +
                     std::to_string(clip));
        auto config = reversal_config();
        config.train.optimizer = optimizer;
        config.train.accumulate = accumulate;
        config.train.clip = clip;
        Learner resident(config);
        config.train.offload = true;
        Learner visiting(config);
        EXPECT_EQ(take_steps(resident, accumulate, 4),
                  take_steps(visiting, accumulate, 4));
        expect_equal_parameters(resident, visiting);
      }
    }
  }
}

TEST(TranslationTraining, CountsTheTokensOfSourceAndTarget) {
  Learner learner(reversal_config());
  // Three rows of 7, 6 and 5 tokens.
  const auto gradients = learner.gradients({Reversals().training_batch(0)}, 1);
  EXPECT_EQ(gradients.tokens, 2 * (7 + 6 + 5));
  EXPECT_EQ(gradients.read().sums.count, 7 + 6 + 5);
}

TEST(TranslationTraining, LearnsToReverse) {
  auto config = reversal_config();
  config.model.attention = "full";
  config.model.dropout = 0;
  config.train.learning_rate = 0.003;
  for (const auto* block : {"reversible", "residual"}) {
    config.model.block = block;
    Learner learner(config);
    const auto numbers = take_steps(learner, 4, 120);
    EXPECT_LT(numbers[numbers.size() - 2], 0.6 * numbers[0]) << block;
  }
}

// Stopped in the middle and gone on with, in every block kind.
TEST(TranslationTraining, GoesOnBitForBit) {
  for (const auto* block : {"reversible", "stored", "residual"}) {
    const TemporaryFolder folder;
    auto config = reversal_config();
    config.model.block = block;
    config.train.evaluate_every = 2;
    std::atomic<bool> stop{false};
    TrainObserver nobody;
    const Reversals through;
    train(config, through, {folder / "through"}, stop, nobody);
    const Reversals stopping([&](int64_t index) {
      if (index == 3) stop = true;
    });
    const auto stopped =
        train(config, stopping, {folder / "stopped"}, stop, nobody);
    EXPECT_EQ(stopped.end, TrainEnd::kStopped);
    EXPECT_EQ(stopped.step, 4);
    stop = false;
    train(config, through, {folder / "stopped", /*resume=*/true}, stop, nobody);
    const auto one = *load_latest_checkpoint(folder / "through");
    const auto other = *load_latest_checkpoint(folder / "stopped");
    EXPECT_EQ(one.step, 6);
    EXPECT_EQ(other.step, 6);
    EXPECT_TRUE(same_bits(one.parameters, other.parameters)) << block;
    EXPECT_TRUE(same_bits(one.optimizer, other.optimizer)) << block;
    EXPECT_EQ(one.best_loss, other.best_loss) << block;
  }
}

TEST(TranslationTraining, IsNoLanguageModel) {
  Learner learner(reversal_config());
  EXPECT_THROW(learner.language_model(), Error);
}

}  // namespace
}  // namespace reformer
