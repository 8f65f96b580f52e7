#include "reformer/base/printable.h"

#include <gtest/gtest.h>

namespace reformer {
namespace {

const std::string kReplaced = "\xEF\xBF\xBD";

TEST(Printable, LeavesTextAsItIs) {
  const std::string text = "it's a_b^{2} `x` \"y\" \\n é 語 😀";
  EXPECT_EQ(printable(text), text);
}

TEST(Printable, ReplacesWhatCommandsATerminalOrEndsALine) {
  for (const std::string command : {"\n", "\r", "\x1B", "\x7F", "\xC2\x9B",
                                    "\xE2\x80\xA8", "\xE2\x80\xAE"}) {
    EXPECT_EQ(printable("a" + command + "b"), "a" + kReplaced + "b");
  }
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a" + kReplaced + "b");
}

TEST(Printable, ReplacesEachByteThatIsNotUtf8) {
  EXPECT_EQ(printable("\xFF"), kReplaced);
  EXPECT_EQ(printable("\xC3"), kReplaced);                  // cut short
  EXPECT_EQ(printable("\xC0\x80"), kReplaced + kReplaced);  // too long
  EXPECT_EQ(printable("\xED\xA0\x80"), kReplaced + kReplaced + kReplaced);
  EXPECT_EQ(printable("\xC3("), kReplaced + "(");
}

TEST(Printable, IsNoLongerThanAsked) {
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_EQ(printable("abcde", 4), "abc…");
  EXPECT_EQ(printable("éééé", 3), "éé…");
}

}  // namespace
}  // namespace reformer
