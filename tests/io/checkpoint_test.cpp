#include "reformer/io/checkpoint.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "reformer/config/config_json.h"
#include "tests/io/checkpoint_fixture.h"
#include "tests/support/latest_checkpoint.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

TEST_F(CheckpointTest, EverythingComesBackBitForBit) {
  Checkpoint saved = tiny_checkpoint(123'456'789'012, 3);
  saved.config.model.axial_shape = {4, 5};
  saved.config.train.learning_rate = 0.1 + 0.2;
  saved.config.task.data = "a \"b\"\n.txt";
  saved.data_position = std::numeric_limits<int64_t>::max();
  saved.threads = 7;
  saved.tokenizer = std::string("pieces\0\n\xff", 9);
  saved.instruction_set = "avx2";
  saved.has_best = true;
  saved.evaluated_step = 123'456'000'000;
  saved.data = {{"task.data", 77, "00ff"}, {"task.validation", 1, "ee"}};
  for (const double number : {0.1 + 0.2, -0.0, 5e-324, 1.7976931348623157e308,
                              1.0 / 3, HUGE_VAL, -HUGE_VAL}) {
    saved.best_loss = number;
    saved.seconds = number / 3;
    save_checkpoint(run_, saved, false);
    EXPECT_TRUE(fs::exists(folder_ / "step-123456789012"));
    const Checkpoint loaded = load_latest_checkpoint(run_).value();
    EXPECT_EQ(loaded.step, saved.step);
    EXPECT_EQ(loaded.data_position, saved.data_position);
    EXPECT_EQ(std::signbit(loaded.best_loss), std::signbit(saved.best_loss));
    EXPECT_EQ(loaded.best_loss, saved.best_loss);
    EXPECT_EQ(loaded.has_best, saved.has_best);
    EXPECT_EQ(loaded.seconds, saved.seconds);
    EXPECT_EQ(loaded.evaluated_step, saved.evaluated_step);
    EXPECT_EQ(loaded.data, saved.data);
    EXPECT_EQ(loaded.threads, saved.threads);
    EXPECT_EQ(loaded.tokenizer, saved.tokenizer);
    EXPECT_EQ(loaded.instruction_set, saved.instruction_set);
    EXPECT_EQ(config_to_json(loaded.config), config_to_json(saved.config));
    EXPECT_TRUE(same_bits(loaded.parameters, saved.parameters));
    EXPECT_TRUE(same_bits(loaded.optimizer, saved.optimizer));
  }
}

TEST_F(CheckpointTest, ALossThatIsNoNumberComesBackAsOne) {
  Checkpoint saved = tiny_checkpoint(1, 1);
  saved.best_loss = std::nan("");
  save_checkpoint(run_, saved, false);
  EXPECT_TRUE(std::isnan(load_latest_checkpoint(run_)->best_loss));
}

TEST_F(CheckpointTest, ARunWithoutCheckpointsGivesNothing) {
  EXPECT_EQ(latest(), -1);
  EXPECT_EQ(error_of([&] { best(); }), run_ + ": holds no checkpoint");
  run_ = folder_ / "missing";
  EXPECT_EQ(latest(), -1);
  EXPECT_EQ(error_of([&] { best(); }), run_ + ": no such folder");
}

TEST_F(CheckpointTest, ACheckpointItselfMayBeGiven) {
  save(1, /*best=*/true);
  save(2);
  EXPECT_EQ(load_best_checkpoint(folder_ / "step-00000002").step, 2);
  EXPECT_EQ(load_best_checkpoint(folder_ / "step-00000002/").step, 2);
  EXPECT_EQ(load_best_checkpoint(folder_ / "best").step, 1);
}

TEST_F(CheckpointTest, TheLastFewAreKept) {
  for (int64_t step = 1; step <= 5; ++step) save(step, false, /*keep=*/3);
  EXPECT_EQ(names_in(run_),
            (Names{"step-00000003", "step-00000004", "step-00000005"}));
  EXPECT_EQ(latest(), 5);
  save(6, false, /*keep=*/1);
  EXPECT_EQ(names_in(run_), (Names{"step-00000006"}));
}

TEST_F(CheckpointTest, TheOneJustSavedIsNeverRemoved) {
  save(9);
  save(5, false, /*keep=*/1);
  save(4, false, /*keep=*/0);
  EXPECT_EQ(load_best_checkpoint(folder_ / "step-00000004").step, 4);
}

TEST_F(CheckpointTest, TheBestIsKeptUntilThereIsABetter) {
  save(1);
  EXPECT_EQ(best(), 1);
  save(2, /*best=*/true);
  for (int64_t step = 3; step <= 6; ++step) save(step);
  EXPECT_EQ(names_in(run_),
            (Names{"best", "step-00000002", "step-00000005", "step-00000006"}));
  EXPECT_EQ(best(), 2);
  EXPECT_EQ(latest(), 6);
  save(7, /*best=*/true);
  EXPECT_EQ(names_in(run_), (Names{"best", "step-00000006", "step-00000007"}));
  EXPECT_EQ(best(), 7);
  EXPECT_EQ(fs::read_symlink(folder_ / "best"), "step-00000007");
}

TEST_F(CheckpointTest, AStepSavedAgainIsReplacedAndStaysTheBest) {
  save(1, /*best=*/true);
  save(2);
  Checkpoint again = tiny_checkpoint(1, 2);
  again.seconds = 42;
  save_checkpoint(run_, again, false);
  const Checkpoint loaded = load_best_checkpoint(run_);
  EXPECT_EQ(loaded.step, 1);
  EXPECT_EQ(loaded.seconds, 42);
  EXPECT_EQ(names_in(run_), (Names{"best", "step-00000001", "step-00000002"}));
}

TEST_F(CheckpointTest, TheLinkIsNotNeeded) {
  save(1, /*best=*/true);
  save(2);
  fs::remove(folder_ / "best");
  EXPECT_EQ(best(), 1);
  fs::create_directory(folder_ / "best");  // as scp leaves it
  save(3);
  EXPECT_EQ(best(), 1);
  EXPECT_EQ(names_in(run_),
            (Names{"best", "step-00000001", "step-00000002", "step-00000003"}));
}

TEST_F(CheckpointTest, LeftoversAreIgnoredAndThenRemoved) {
  save(1);
  fs::create_directory(folder_ / ".tmp-step-00000009-77");
  put_bytes(folder_ / ".tmp-step-00000009-77/state.json", "{");
  put_bytes(folder_ / ".tmp-config.json-77", "{");
  fs::create_directory(folder_ / "step-00000001.old");
  fs::create_directory(folder_ / ".tmp-step-00000001.old-78");
  put_bytes(folder_ / ".tmp-metrics.jsonl-77-0123456789abcdef", "{");
  fs::create_directory_symlink("step-00000001", folder_ / ".tmp-best-77");
  EXPECT_EQ(latest(), 1);
  save(2);
  EXPECT_EQ(names_in(run_), (Names{"step-00000001", "step-00000002"}));
}

TEST_F(CheckpointTest, OtherFilesAndFoldersAreLeftAlone) {
  const Names others = {"step-7",
                        "step-0000000x",
                        "step-00000008.bak",
                        "notes",
                        ".tmp-",
                        ".tmp-thesis",
                        ".tmp-thesis-12",
                        ".tmp-step-00000009",
                        ".tmp-step-00000009-x",
                        ".tmp-step-9-77",
                        ".tmp-step-00000009-77-0123456789abcdefg",
                        ".tmp-step-00000009-0123456789abcdef",
                        ".tmp-config.json-"};
  for (const auto& name : others) fs::create_directory(folder_ / name);
  put_bytes(folder_ / "step-00000009", "a file");
  EXPECT_EQ(latest(), -1);
  for (int64_t step = 1; step <= 4; ++step) save(step, false, /*keep=*/1);
  Names expected = others;
  expected.insert({"step-00000009", "step-00000004"});
  EXPECT_EQ(names_in(run_), expected);
}

TEST_F(CheckpointTest, AReplacedOneOpensUntilItsReplacementIsThere) {
  save(1, /*best=*/true);
  fs::rename(first_, folder_ / "step-00000001.old");
  EXPECT_EQ(latest(), 1);
  EXPECT_EQ(best(), 1);
  save(2);
  EXPECT_EQ(best(), 1);
  save(1);
  EXPECT_EQ(best(), 1);
  EXPECT_EQ(names_in(run_), (Names{"best", "step-00000001", "step-00000002"}));
}

TEST_F(CheckpointTest, OpensWhileTheRunGoesOn) {
  save(1, /*best=*/true);
  std::atomic<bool> done{false};
  const std::jthread training([&] {
    for (int64_t step = 2; step < 60; ++step) {
      save(step, step % 3 == 0, /*keep=*/1);
    }
    done = true;
  });
  int64_t before = 0;
  while (!done) {
    const int64_t step = load_latest_model(run_)->step;
    EXPECT_GE(step, before);
    before = step;
    EXPECT_GE(best(), 1);
  }
}

TEST_F(CheckpointTest, OneThatIsNotFiniteIsNotWritten) {
  save(1);
  for (const bool in_optimizer : {false, true}) {
    for (const double wrong : {HUGE_VAL, std::nan("")}) {
      Checkpoint bad = tiny_checkpoint(2, 1);
      auto& tensor = (in_optimizer ? bad.optimizer : bad.parameters)[1];
      tensor.value[3] = wrong;
      try {
        save_checkpoint(run_, bad, /*best=*/true);
        FAIL() << "it was saved";
      } catch (const NotFinite& error) {
        EXPECT_EQ(error.what(), "checkpoint: " + tensor.name +
                                    " is not finite after step 2, and is not "
                                    "saved");
      }
    }
  }
  EXPECT_EQ(names_in(run_), (Names{"step-00000001"}));
  EXPECT_EQ(latest(), 1);
}

TEST_F(CheckpointTest, AnEvaluationIsAddedToWhatWasSaved) {
  save(1, /*best=*/true, /*keep=*/1);
  save(2, /*best=*/false, /*keep=*/1);
  const auto before = load_latest_checkpoint(run_).value();
  EXPECT_EQ(before.evaluated_step, -1);
  record_evaluation(run_, {2, 0.75, true, /*best=*/false});
  EXPECT_EQ(best(), 1);
  record_evaluation(run_, {2, 0.5, true, /*best=*/true});
  EXPECT_EQ(best(), 2);
  EXPECT_EQ(names_in(run_), (Names{"best", "step-00000002"}));
  EXPECT_EQ(fs::read_symlink(folder_ / "best"), "step-00000002");
  const auto after = load_latest_checkpoint(run_).value();
  EXPECT_EQ(after.evaluated_step, 2);
  EXPECT_EQ(after.best_loss, 0.5);
  EXPECT_TRUE(after.has_best);
  EXPECT_EQ(after.data_position, before.data_position);
  EXPECT_TRUE(same_bits(after.parameters, before.parameters));
  EXPECT_TRUE(same_bits(after.optimizer, before.optimizer));
}

}  // namespace
}  // namespace reformer
