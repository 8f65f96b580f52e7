#include "reformer/distributed/dealt_lines.h"

#include <gtest/gtest.h>

#include "tests/distributed/rank_threads.h"

namespace reformer {
namespace {

// All different, and of bytes that a list of lines is written with.
const Lines kLines = {"one",  "",     "12:3",   ":", "7",
                      "a\nb", "0:0:", "\xff\t", " ", std::string("\0x", 2)};

TEST(DealtLines, ComeBackInTheirOrder) {
  for (const size_t count : {10, 9, 3, 1, 0}) {  // fewer than ranks, too
    const Lines lines(kLines.begin(), kLines.begin() + long(count));
    for (const int64_t ranks : {1, 2, 3, 4}) {
      with_ranks(ranks, Config(), [&](World& world) {
        const Lines own = dealt_lines(lines, &world);
        EXPECT_LE(own.size(), count / size_t(ranks) + 1);
        EXPECT_EQ(gathered_lines(own, count, &world), lines)
            << count << " of " << ranks;
      });
    }
  }
}

TEST(DealtLines, OfOneProcessAreAll) {
  EXPECT_EQ(dealt_lines(kLines, nullptr), kLines);
  EXPECT_EQ(gathered_lines(kLines, kLines.size(), nullptr), kLines);
}

}  // namespace
}  // namespace reformer
