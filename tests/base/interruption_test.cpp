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

TEST(Interruption, OthersHaveTheirTurnsBetweenPartsOfTheWork) {
  std::atomic<bool> stop{false};
  int turns = 0;
  const std::function<void()> turn = [&] {
    ++turns;
    EXPECT_FALSE(takes_turns());
    interruption_point();  // none within
    EXPECT_EQ(interruption_flag(), nullptr);
  };
  interruption_point();
  EXPECT_FALSE(takes_turns());
  {
    const Interruptible outer(&stop, &turn);
    for (int i = 1; i <= 3; ++i) {
      EXPECT_TRUE(takes_turns());
      interruption_point();
      EXPECT_EQ(turns, i);
      EXPECT_EQ(interruption_flag(), &stop);
    }
    stop = true;
    EXPECT_THROW(interruption_point(), Interrupted);
    EXPECT_EQ(turns, 3);  // what is given up gives no turns
  }
  EXPECT_FALSE(takes_turns());
}

}  // namespace
}  // namespace reformer
