#include "reformer/base/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace reformer {
namespace {

TEST(Memory, PeakIsTheMostInUseSinceItsReset) {
  const int64_t before = memory::in_use();
  memory::add(1000);
  memory::reset_peak();
  EXPECT_EQ(memory::peak(), before + 1000);
  memory::add(500);
  memory::add(-1500);
  EXPECT_EQ(memory::peak(), before + 1500);
  EXPECT_EQ(memory::in_use(), before);
  memory::reset_peak();
  EXPECT_EQ(memory::peak(), before);
}

TEST(Memory, CountsAllThreads) {
  const int64_t before = memory::in_use();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 10000; ++i) memory::add(i % 2 == 0 ? 3 : -2);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(memory::in_use(), before + 4 * 5000);
  memory::add(-4 * 5000);
}

TEST(Scratch, IsAlignedWritableAndCountedWhileItLives) {
  const int64_t before = memory::in_use();
  for (const int64_t count : {0, 1, 7, 1000, 3000000}) {
    const Scratch<double> scratch(count);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(scratch.data()) % 64, 0u);
    EXPECT_EQ(memory::in_use(), before + count * 8);
    for (int64_t i = 0; i < count; ++i) scratch[i] = double(i);
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(scratch[i], double(i));
  }
  EXPECT_EQ(memory::in_use(), before);
}

TEST(Scratch, IsNeverSharedByTwoThatLive) {
  { const Scratch<char> released(100); }
  const Scratch<char> one(100);
  const Scratch<char> other(100);
  EXPECT_NE(one.data(), other.data());
}

}  // namespace
}  // namespace reformer
