#include "reformer/io/run_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "reformer/io/checkpoint.h"
#include "tests/io/checkpoint_support.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

class RunLockTest : public testing::Test {
 protected:
  std::string second_error() {
    return error_of([&] { RunLock second(run_); });
  }

  TemporaryFolder folder_;
  std::string run_ = folder_.path();
  std::string file_ = folder_ / kLockFile;
};

TEST_F(RunLockTest, TheSecondSaysWhoHoldsItAndSinceWhen) {
  const RunLock first(run_);
  EXPECT_EQ(first.warning(), "");
  const std::string said = second_error();
  EXPECT_TRUE(said.starts_with(run_ +
                               ": a run is going on in this folder: "
                               "process " +
                               std::to_string(::getpid()) + " on "))
      << said;
  EXPECT_NE(said.find(" since 20"), std::string::npos) << said;
  EXPECT_NE(said.find(" UTC; "), std::string::npos) << said;
}

TEST_F(RunLockTest, WhoComesAfterTheEndGetsItAndFindsNothing) {
  { const RunLock first(run_); }
  EXPECT_FALSE(fs::exists(file_));
  const RunLock second(run_);
}

TEST_F(RunLockTest, OneThatIsMovedIsHeldOnce) {
  RunLock first(run_);
  {
    const RunLock moved(std::move(first));
    EXPECT_NE(second_error(), "");
  }
  EXPECT_EQ(second_error(), "");
}

// Returns when the child has it.
pid_t child_with_lock(const std::string& run) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const RunLock lock(run);
      (void)!::write(ready[1], "!", 1);
      for (;;) ::pause();
    } catch (...) {
      ::_exit(1);
    }
  }
  ::close(ready[1]);
  char byte;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  return child;
}

TEST_F(RunLockTest, AKillLeavesTheFileAndNoLock) {
  const pid_t child = child_with_lock(run_);
  const std::string said = second_error();
  EXPECT_NE(said.find("process " + std::to_string(child) + " on "),
            std::string::npos)
      << said;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(file_));
  EXPECT_EQ(second_error(), "");
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(RunLockTest, WhatAnybodyWroteIntoTheFileIsShownAsOneLine) {
  const RunLock first(run_);
  put_bytes(file_, "\033[2Jrm -rf\nsecond");
  EXPECT_NE(second_error().find("folder: another process; "),
            std::string::npos);
}

TEST_F(RunLockTest, AFolderThatCannotBeWrittenIsNamed) {
  run_ = folder_ / "missing";
  EXPECT_EQ(second_error(),
            run_ + "/run.lock: cannot write: No such file or directory");
}

TEST_F(RunLockTest, ANewRunInAFolderThatIsHeldSaysByWhom) {
  for (const bool begun : {false, true}) {
    const RunLock first(run_);
    if (begun) put_bytes(folder_ / "config.json", "{}");
    const auto said = error_of([&] { create_run_directory(run_, {}); });
    EXPECT_NE(said.find("a run is going on"), std::string::npos) << said;
  }
}

TEST_F(RunLockTest, ANewRunHoldsItsFolder) {
  const RunLock lock = create_run_directory(run_, {});
  EXPECT_NE(second_error(), "");
}

TEST_F(RunLockTest, ReadersNeedNoLock) {
  save_checkpoint(run_, tiny_checkpoint(3, 1), /*best=*/true);
  const RunLock first(run_);
  EXPECT_EQ(load_best_checkpoint(run_).step, 3);
}

TEST_F(RunLockTest, TheFileOfAKilledBeginnerIsInNobodysWay) {
  put_bytes(file_, "process 7 on box since 2026-01-01 00:00:00 UTC\n");
  create_run_directory(run_, {});
  EXPECT_TRUE(fs::exists(folder_ / "config.json"));
}

TEST_F(RunLockTest, AFileOfThatNameThatIsNotOursIsLeftAlone) {
  put_bytes(file_, "somebody's notes");
  EXPECT_NE(error_of([&] { create_run_directory(run_, {}); }), "");
  EXPECT_EQ(bytes_of(file_), "somebody's notes");
  EXPECT_EQ(std::distance(fs::directory_iterator(run_), {}), 1);
}

}  // namespace
}  // namespace reformer
