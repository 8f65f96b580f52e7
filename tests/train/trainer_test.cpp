// The training loop: what is saved when, and what a run that was stopped in the
// middle of something finds when it goes on.
#include "reformer/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/io/checkpoint.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/metrics.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"
#include "tests/support/latest_checkpoint.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

Config tiny_config() {
  Config config;
  config.task.name = "duplication";
  config.task.alphabet = 7;
  config.model.layers = 1;
  config.model.d_model = 8;
  config.model.d_ff = 8;
  config.model.heads = 1;
  config.model.d_head = 8;
  config.model.vocabulary = 8;
  config.lsh.chunk_length = 4;
  config.lsh.n_buckets = 2;
  config.train.batch = 2;
  config.train.length = 16;
  config.train.steps = 4;
  config.train.warmup = 1;
  config.train.log_every = 1;
  config.train.checkpoint_every = 0;
  config.train.evaluate_every = 0;
  config.train.evaluate_batches = 3;
  config.train.keep = 9;
  return config;
}

// A task that tells when a batch is asked for, and has what data it is told.
class Telling : public Task {
 public:
  using Tell = std::function<void(bool training, int64_t index)>;

  explicit Telling(const Config& config, Tell tell = {},
                   std::vector<DataIdentity> data = {})
      : task_(make_task(config)), tell_(std::move(tell)), data_(data) {}

  Batch training_batch(int64_t index) const override {
    if (tell_) tell_(true, index);
    return task_->training_batch(index);
  }
  int64_t evaluation_batches(Split split) const override {
    return task_->evaluation_batches(split);
  }
  Batch evaluation_batch(Split split, int64_t index) const override {
    if (tell_) tell_(false, index);
    return task_->evaluation_batch(split, index);
  }
  std::string metric_name() const override { return task_->metric_name(); }
  double metric_of(double loss) const override {
    return task_->metric_of(loss);
  }
  std::vector<DataIdentity> data() const override { return data_; }

 private:
  std::unique_ptr<Task> task_;
  Tell tell_;
  std::vector<DataIdentity> data_;
};

class Noting : public TrainObserver {
 public:
  void warned(const std::string& sentence) override { said += sentence; }
  std::string said;
};

class TrainerTest : public testing::Test {
 protected:
  TrainResult run(const Config& config, const Task& task,
                  const std::string& name, bool resume = false) {
    stop_ = false;
    return train(config, task, {folder_ / name, resume}, stop_, noted_);
  }

  // Stopped in the second batch of the n-th evaluation.
  Telling stopping_in_evaluation(const Config& config, int64_t n) {
    return Telling(config, [this, left = n](bool training, int64_t i) mutable {
      if (!training && i == 1 && --left == 0) stop_ = true;
    });
  }

  // Of the newest checkpoint, and of what the metrics say but for times.
  void expect_same(const std::string& a, const std::string& b) {
    const auto one = *load_latest_checkpoint(folder_ / a);
    const auto other = *load_latest_checkpoint(folder_ / b);
    EXPECT_EQ(one.step, other.step);
    EXPECT_TRUE(same_bits(one.parameters, other.parameters));
    EXPECT_TRUE(same_bits(one.optimizer, other.optimizer));
    EXPECT_EQ(one.data_position, other.data_position);
    EXPECT_EQ(one.best_loss, other.best_loss);
    EXPECT_EQ(one.has_best, other.has_best);
    EXPECT_EQ(one.evaluated_step, other.evaluated_step);
    EXPECT_EQ(load_best_checkpoint(folder_ / a).step,
              load_best_checkpoint(folder_ / b).step);
    EXPECT_EQ(told(a), told(b));
  }

  std::vector<std::string> told(const std::string& name) {
    std::vector<std::string> lines;
    for (const auto& [step, scalars] : read_metrics(folder_ / name)) {
      for (const auto& [key, value] : scalars) {
        if (key != "train/loss" && key != "validation/loss") continue;
        lines.push_back(std::to_string(step) + " " + key + " " +
                        std::to_string(value));
      }
    }
    return lines;
  }

  TemporaryFolder folder_;
  std::atomic<bool> stop_{false};
  Noting noted_;
};

TEST_F(TrainerTest, EverythingIsSavedBeforeTheLastEvaluation) {
  for (const int64_t evaluate_every : {0, 4}) {
    auto config = tiny_config();
    config.train.evaluate_every = evaluate_every;
    const std::string name = std::to_string(evaluate_every);
    const Telling failing(config, [](bool training, int64_t) {
      require(training, "killed in the evaluation");
    });
    EXPECT_EQ(error_of([&] { run(config, failing, name); }),
              "killed in the evaluation");
    const auto left = load_latest_checkpoint(folder_ / name);
    ASSERT_TRUE(left.has_value());
    EXPECT_EQ(left->step, 4);
    EXPECT_EQ(left->evaluated_step, -1);

    run(config, Telling(config), "whole" + name);
    run(config, Telling(config), name, /*resume=*/true);
    expect_same(name, "whole" + name);
  }
}

// One that is killed before its first save would go on from other weights.
TEST_F(TrainerTest, WeightsThatARunBeginsWithAreSavedBeforeItsFirstStep) {
  auto config = tiny_config();
  run(config, *make_task(config), "first");
  const auto given = load_latest_checkpoint(folder_ / "first")->parameters;
  config.train.seed = 5;
  const Telling killed(config, [](bool, int64_t) {
    throw std::runtime_error("killed in the first step");
  });
  RunPlace place{folder_ / "tuned"};
  place.parameters = given;
  EXPECT_THROW(train(config, killed, place, stop_, noted_), std::runtime_error);
  const auto saved = load_latest_checkpoint(folder_ / "tuned");
  ASSERT_TRUE(saved.has_value());
  EXPECT_EQ(saved->step, 0);
  EXPECT_LT(saved->seconds, 600);  // of this run, not of the machine
  EXPECT_TRUE(same_bits(saved->parameters, given));

  run(config, *make_task(config), "tuned", /*resume=*/true);
  place.directory = folder_ / "whole";
  train(config, *make_task(config), place, stop_, noted_);
  expect_same("tuned", "whole");
}

TEST_F(TrainerTest, StoppedInAnEvaluationItGoesOnAsIfItHadNotBeen) {
  auto config = tiny_config();
  config.train.evaluate_every = 2;
  for (const int64_t checkpoint_every : {0, 1, 2, 3}) {
    config.train.checkpoint_every = checkpoint_every;
    const std::string whole = "whole" + std::to_string(checkpoint_every);
    run(config, Telling(config), whole);
    for (const int64_t evaluation : {1, 2}) {
      const std::string name = std::to_string(evaluation) + whole;
      const auto stopped =
          run(config, stopping_in_evaluation(config, evaluation), name);
      EXPECT_EQ(stopped.end, TrainEnd::kStopped);
      EXPECT_EQ(stopped.step, 2 * evaluation);
      EXPECT_EQ(load_latest_checkpoint(folder_ / name)->step, 2 * evaluation);
      const auto rest = run(config, Telling(config), name, /*resume=*/true);
      EXPECT_EQ(rest.end, TrainEnd::kSteps);
      expect_same(name, whole);
    }
  }
}

// Killed when the line was written and the checkpoint did not know yet.
TEST_F(TrainerTest, AnEvaluationThatIsDoneAgainIsWrittenOnce) {
  auto config = tiny_config();
  config.train.evaluate_every = 2;
  run(config, Telling(config), "whole");
  run(config, stopping_in_evaluation(config, 2), "run");
  MetricsWriter(folder_ / "run", {4}).write(4, {{"validation/loss", 99}});
  run(config, Telling(config), "run", /*resume=*/true);
  expect_same("run", "whole");
}

TEST_F(TrainerTest, WhatIsDoneIsNotEvaluatedAgain) {
  const auto config = tiny_config();
  run(config, Telling(config), "run");
  const auto before = told("run");
  const Telling failing(config,
                        [](bool, int64_t) { throw Error("asked for data"); });
  EXPECT_EQ(run(config, failing, "run", /*resume=*/true).end,
            TrainEnd::kBefore);
  EXPECT_EQ(told("run"), before);
}

TEST_F(TrainerTest, ALossOfNanFromBeforeIsBeatenByAnyOther) {
  auto config = tiny_config();
  run(config, Telling(config), "run");
  auto checkpoint = *load_latest_checkpoint(folder_ / "run");
  checkpoint.has_best = true;
  checkpoint.best_loss = std::nan("");
  save_checkpoint(folder_ / "run", checkpoint, /*best=*/true);
  config.train.steps = 6;
  EXPECT_TRUE(
      run(config, Telling(config), "run", /*resume=*/true).evaluation.best);
  EXPECT_EQ(load_best_checkpoint(folder_ / "run").step, 6);
}

TEST_F(TrainerTest, ADivergedRunMarksNothingAsBestAndKeepsWhatIsGood) {
  auto config = tiny_config();
  config.train.steps = 40;
  config.train.optimizer = "adamw";
  config.train.learning_rate = 1e30;
  config.train.checkpoint_every = config.train.evaluate_every = 1;
  const auto said = error_of([&] { run(config, Telling(config), "diverged"); });
  EXPECT_NE(said.find("not finite"), std::string::npos) << said;
  EXPECT_NE(said.find("train.learning_rate"), std::string::npos) << said;
  for (const auto& found : checkpoints_in(folder_ / "diverged")) {
    const auto checkpoint = load_best_checkpoint(found.folder);  // finite
    EXPECT_FALSE(is_best(found)) << checkpoint.step;
    EXPECT_FALSE(checkpoint.has_best);
  }
}

TEST_F(TrainerTest, OtherDataAreRefusedUnlessTheyAreAllowed) {
  auto config = tiny_config();
  const std::vector<DataIdentity> data = {{"task.data", 10, "aa"}};
  const std::vector<DataIdentity> others = {{"task.data", 10, "bb"}};
  run(config, Telling(config, {}, data), "run");
  EXPECT_EQ(load_latest_checkpoint(folder_ / "run")->data, data);
  config.train.steps = 6;
  const auto said =
      error_of([&] { run(config, Telling(config, {}, others), "run", true); });
  EXPECT_NE(said.find("task.data is 10 bytes of hash bb and was"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("--allow-other-data"), std::string::npos) << said;
  EXPECT_EQ(load_latest_checkpoint(folder_ / "run")->step, 4);

  RunPlace place{folder_ / "run", /*resume=*/true};
  place.allow_other_data = true;
  train(config, Telling(config, {}, others), place, stop_, noted_);
  EXPECT_NE(noted_.said.find("the data are not those"), std::string::npos);
  EXPECT_EQ(load_latest_checkpoint(folder_ / "run")->data, others);
}

TEST_F(TrainerTest, TheSameDataAreNoMatter) {
  auto config = tiny_config();
  const std::vector<DataIdentity> data = {{"task.data", 10, "aa"}};
  run(config, Telling(config, {}, data), "run");
  config.train.steps = 6;
  run(config, Telling(config, {}, data), "run", true);
  EXPECT_EQ(noted_.said, "");
}

TEST_F(TrainerTest, TwoRunsInOneFolderAreOneTooMany) {
  const auto config = tiny_config();
  std::string said;
  const Telling task(config, [&](bool training, int64_t index) {
    if (!training || index != 1 || !said.empty()) return;
    const Telling inner(config);
    for (const bool resume : {false, true}) {
      said += error_of([&] { run(config, inner, "run", resume); }) + "\n";
    }
  });
  run(config, task, "run");
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2);
  const auto first = said.find("a run is going on in this folder: process ");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_NE(said.find("a run is going on in this folder", first + 1),
            std::string::npos)
      << said;
  EXPECT_FALSE(fs::exists(folder_ / "run/run.lock"));
}

TEST_F(TrainerTest, ATailOfZerosInTheMetricsIsCutWithANote) {
  auto config = tiny_config();
  run(config, Telling(config), "run");
  config.train.steps = 5;
  run(config, Telling(config), "whole");
  const std::string path = folder_ / "run/metrics.jsonl";
  put_bytes(path, bytes_of(path) + std::string(100, '\0') + "\n");
  run(config, Telling(config), "run", /*resume=*/true);
  EXPECT_NE(noted_.said.find(path + ": its last 101 bytes"), std::string::npos);
  EXPECT_EQ(read_metrics(folder_ / "run").size(), 5u + 2u);
}

}  // namespace
}  // namespace reformer
