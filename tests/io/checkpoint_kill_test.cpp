// Killed at any moment, a run's folder opens. A child process saves and is
// killed; then its folder has to hold what it had saved.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "reformer/io/checkpoint.h"
#include "tests/io/checkpoint_support.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"
#include "tests/support/latest_checkpoint.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

bool is_whole(const Checkpoint& checkpoint) {
  const auto expected = tiny_checkpoint(checkpoint.step, /*keep=*/1);
  return same_bits(checkpoint.parameters, expected.parameters) &&
         same_bits(checkpoint.optimizer, expected.optimizer) &&
         checkpoint.data_position == expected.data_position;
}

// What must be true of a run's folder after a kill.
testing::AssertionResult opens(const std::string& run, int64_t least,
                               int64_t most) {
  try {
    const auto latest = load_latest_checkpoint(run);
    if (!latest) return testing::AssertionFailure() << "nothing there";
    const auto best = load_best_checkpoint(run);
    if (!is_whole(*latest) || !is_whole(best)) {
      return testing::AssertionFailure() << "not whole";
    }
    if (latest->step < least || latest->step > most) {
      return testing::AssertionFailure() << "step " << latest->step;
    }
    for (const auto& entry : fs::directory_iterator(run)) {
      if (entry.path().filename().string().starts_with("step-")) {
        load_best_checkpoint(entry.path());
      }
    }
    if (latest->has_best && latest->best_loss != best.best_loss) {
      return testing::AssertionFailure() << "the best is another";
    }
  } catch (const std::exception& error) {
    return testing::AssertionFailure() << error.what();
  }
  return testing::AssertionSuccess();
}

// By one rank, or in files of several.
using Save = void (*)(const std::string& run, const Checkpoint& checkpoint,
                      bool best);

void save_in_files_of_ranks(const std::string& run,
                            const Checkpoint& checkpoint, bool best) {
  save_in_parts(run, checkpoint, best);
}

// With a loss that falls at every second step.
void save(const std::string& run, int64_t step, Save by = save_checkpoint) {
  Checkpoint checkpoint = tiny_checkpoint(step, /*keep=*/1);
  checkpoint.has_best = true;
  checkpoint.best_loss = -std::floor(double(step) / 2);
  by(run, checkpoint, /*best=*/step % 2 == 0);
}

TEST(CheckpointKill, AtRandomMomentsTheFolderOpens) {
  using Clock = std::chrono::steady_clock;
  const TemporaryFolder folder;
  const auto start = Clock::now();
  save(folder.path(), 2);
  const auto one_save = Clock::now() - start;
  int64_t step = 2;
  for (int kill = 0; kill < 20; ++kill) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int64_t next = step + 1;; ++next) save(folder.path(), next);
    }
    std::this_thread::sleep_for(kill * one_save / 3);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ASSERT_TRUE(opens(folder.path(), step, step + 1'000'000))
        << "kill " << kill;
    step = load_latest_checkpoint(folder.path())->step;
  }
  EXPECT_GT(step, 2);
}

// Runs `saving` in a child and kills it after its n-th system call. Returns 1,
// or 0 where it ended before, or -1 where tracing is not allowed.
template <class Function>
int killed_at(int n, Function saving) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
    ::raise(SIGSTOP);
    saving();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return -1;
  // It stops when it enters a call and when it leaves it.
  for (int stop = 0; stop < 2 * n && WIFSTOPPED(status); ++stop) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
  }
  if (!WIFSTOPPED(status)) return 0;
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return 1;
}

// At every system call, since nothing but those changes the folder: of a save
// that replaces the best and removes an old one, and of one that saves the
// same step a second time.
void expect_it_opens_after_every_system_call_of(Save by) {
  for (const int64_t step : {4, 3}) {
    int killed = 1;
    for (int n = 1; killed == 1; ++n) {
      const TemporaryFolder folder;
      save(folder.path(), 2, by);
      save(folder.path(), 3, by);
      killed = killed_at(n, [&] { save(folder.path(), step, by); });
      if (killed < 0) GTEST_SKIP() << "may not trace a child";
      ASSERT_TRUE(opens(folder.path(), 3, step)) << "call " << n;
      save(folder.path(), 5, by);
      for (const auto& entry : fs::directory_iterator(folder.path())) {
        const std::string name = entry.path().filename();
        EXPECT_TRUE(name == "best" || name.size() == 13) << name;
      }
    }
  }
}

TEST(CheckpointKill, AtEverySystemCallTheFolderOpens) {
  expect_it_opens_after_every_system_call_of(save_checkpoint);
}

TEST(CheckpointKill, AtEverySystemCallOfRanksTheFolderOpens) {
  expect_it_opens_after_every_system_call_of(save_in_files_of_ranks);
}

// The mark and the numbers of an evaluation come after the save.
TEST(CheckpointKill, AtEverySystemCallAnEvaluationIsThereOrToBeDoneAgain) {
  int killed = 1;
  for (int n = 1; killed == 1; ++n) {
    const TemporaryFolder folder;
    const auto record = [&] {
      record_evaluation(folder.path(), {3, -7, true, /*best=*/true});
    };
    save(folder.path(), 2);
    save(folder.path(), 3);
    killed = killed_at(n, record);
    if (killed < 0) GTEST_SKIP() << "may not trace a child";
    ASSERT_TRUE(opens(folder.path(), 3, 3)) << "call " << n;
    finish_saving(folder.path(), /*keep=*/1);
    const std::string link = fs::read_symlink(folder / "best");
    EXPECT_EQ(load_best_checkpoint(folder / link).step,
              load_best_checkpoint(folder.path()).step);
    const auto latest = *load_latest_checkpoint(folder.path());
    if (latest.evaluated_step == 3) {
      EXPECT_EQ(latest.best_loss, -7) << "call " << n;
      EXPECT_EQ(load_best_checkpoint(folder.path()).step, 3) << "call " << n;
    } else {
      EXPECT_EQ(latest.best_loss, -1) << "call " << n;
    }
    record();
    EXPECT_EQ(load_best_checkpoint(folder.path()).best_loss, -7);
    EXPECT_EQ(load_best_checkpoint(folder.path()).evaluated_step, 3);
    for (const auto& entry : fs::directory_iterator(folder / "step-00000003")) {
      EXPECT_NE(entry.path().filename().string()[0], '.') << entry.path();
    }
  }
}

}  // namespace
}  // namespace reformer
