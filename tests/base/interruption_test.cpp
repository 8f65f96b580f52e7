#include "reformer/base/interruption.h"

#include <gtest/gtest.h>

#include <atomic>

#include "reformer/base/parallel.h"

namespace reformer {
namespace {

TEST(Interruption, TasksEndOnceTheFlagIsTrueOnAnyNumberOfThreads) {
  const int before = threads();
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    std::atomic<bool> stop{false};
    std::atomic<int64_t> run{0};
    const Interruptible interruptible(&stop);
    EXPECT_THROW(parallel_tasks(1000,
                                [&](int64_t) {
                                  ++run;
                                  stop = true;
                                }),
                 Interrupted);
    EXPECT_LE(run, count);
    EXPECT_THROW(interruption_point(), Interrupted);
    stop = false;
    interruption_point();
  }
  set_threads(before);
}

TEST(Interruption, IsOfThisThreadWhileItExists) {
  std::atomic<bool> stop{true};
  const auto work = [] { parallel_tasks(10, [](int64_t) {}); };
  work();
  {
    const Interruptible outer(&stop);
    EXPECT_THROW(work(), Interrupted);
    {
      const Interruptible inner(nullptr);
      work();
    }
    EXPECT_THROW(work(), Interrupted);
  }
  work();
  interruption_point();
}

}  // namespace
}  // namespace reformer
