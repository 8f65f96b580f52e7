#include "reformer/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

class ParallelTasks : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    before_ = threads();
    set_threads(GetParam());
  }
  void TearDown() override { set_threads(before_); }

 private:
  int before_ = 1;
};

INSTANTIATE_TEST_SUITE_P(Threads, ParallelTasks, testing::Values(1, 2, 3));

TEST_P(ParallelTasks, RunEachTaskOnce) {
  for (const int64_t tasks : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> runs(tasks);
    parallel_tasks(tasks, [&](int64_t task) { ++runs[task]; });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
}

TEST_P(ParallelTasks, RunInsideATask) {
  std::atomic<int64_t> sum{0};
  parallel_tasks(8, [&](int64_t outer) {
    parallel_tasks(8, [&](int64_t inner) { sum += outer * inner; });
  });
  EXPECT_EQ(sum, 28 * 28);
}

TEST_P(ParallelTasks, ThrowAgainWhatATaskThrew) {
  for (const int64_t tasks : {1, 100}) {
    try {
      parallel_tasks(tasks, [&](int64_t task) {
        if (task == tasks / 2) throw Error("from a task");
      });
      ADD_FAILURE() << "nothing was thrown by one of " << tasks;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), std::string("from a task"));
    }
  }
}

TEST(Threads, AreAtLeastOne) {
  const int before = threads();
  set_threads(3);
  EXPECT_EQ(threads(), 3);
  EXPECT_THROW(set_threads(0), Error);
  EXPECT_THROW(set_threads(-1), Error);
  EXPECT_EQ(threads(), 3);
  set_threads(before);
}

#ifndef __SANITIZE_THREAD__  // there no thread outlives its task

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       {});
}

TEST(Threads, AreReleasedAndStartedAnew) {
  std::thread([] {
    set_threads(3);
    const auto before = threads_of_this_process();
    const auto works = [] {
      std::atomic<int> runs{0};
      parallel_tasks(100, [&](int64_t) { ++runs; });
      return runs == 100;
    };
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(works());
      EXPECT_EQ(threads_of_this_process(), before + 2);
      release_threads();
      while (threads_of_this_process() > before) std::this_thread::yield();
    }
    release_threads();  // of none
  }).join();
}

#endif

}  // namespace
}  // namespace reformer
