#include <gtest/gtest.h>

#include <filesystem>

#include "reformer/io/checkpoint.h"
#include "tests/io/checkpoint_fixture.h"
#include "tests/support/latest_checkpoint.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

class RunDirectory : public CheckpointTest {};

TEST_F(RunDirectory, ANewRunGetsItsFolderAndConfig) {
  const std::string run = folder_ / "a/b/c";
  fs::create_directories(run);  // an empty one will do, and so will
  put_bytes(run + "/.tmp-config.json-1", "{");  // what a kill left behind
  Config config;
  config.train.steps = 77;
  create_run_directory(run, config);
  EXPECT_EQ(load_run_config(run).train.steps, 77);
  EXPECT_FALSE(fs::exists(run + "/.tmp-config.json-1"));
}

// Killed between its tokenizer and its settings.
TEST_F(RunDirectory, ARunThatWasKilledBeforeItsSettingsIsBegunAgain) {
  put_bytes(folder_ / "tokenizer.model", "pieces");
  EXPECT_TRUE(error_of([&] {
                create_run_directory(run_, {});
              }).starts_with(run_ + ": exists and is not empty"));
  std::string lock;
  {
    const RunLock held(run_);
    lock = bytes_of(folder_ / "run.lock");
  }
  put_bytes(folder_ / "run.lock", lock);
  create_run_directory(run_, {}, "other pieces");
  EXPECT_EQ(bytes_of(folder_ / "tokenizer.model"), "other pieces");
}

TEST_F(RunDirectory, ANewRunDoesNotTouchAnOldOne) {
  const std::string message = run_ + ": already holds a run; ";
  save(1);
  EXPECT_TRUE(
      error_of([&] { create_run_directory(run_, {}); }).starts_with(message));
  fs::remove_all(first_);
  put_bytes(folder_ / "config.json", "{}");
  EXPECT_TRUE(
      error_of([&] { create_run_directory(run_, {}); }).starts_with(message));
}

TEST_F(RunDirectory, ANewRunWantsAFolderOfItsOwn) {
  put_bytes(folder_ / ".tmp-config.json-1", "{");
  fs::create_directory(folder_ / ".tmp-thesis");
  const auto with_theirs = error_of([&] { create_run_directory(run_, {}); });
  EXPECT_EQ(with_theirs,
            run_ +
                ": exists and is not empty, it holds .tmp-thesis; choose "
                "another folder");
  EXPECT_EQ(names_in(run_), (Names{".tmp-config.json-1", ".tmp-thesis"}));
  put_bytes(folder_ / "thesis.tex", "...");
  EXPECT_TRUE(error_of([&] {
                create_run_directory(run_, {});
              }).starts_with(run_ + ": exists and is not empty"));
  const std::string file = folder_ / "thesis.tex";
  EXPECT_TRUE(error_of([&] {
                create_run_directory(file, {});
              }).starts_with(file + ": "));
}

TEST_F(RunDirectory, TheConfigOfARunIsItsNewestCheckpoints) {
  EXPECT_EQ(error_of([&] { load_run_config(run_); }), run_ + ": holds no run");
  put_bytes(folder_ / "config.json", R"({"train": {"steps": 5}})");
  EXPECT_EQ(load_run_config(run_).train.steps, 5);
  save(1);
  EXPECT_EQ(load_run_config(run_).train.steps,
            load_latest_checkpoint(run_)->config.train.steps);
}

}  // namespace
}  // namespace reformer
