#include "cli/draw/repeat_losses.h"

#include <gtest/gtest.h>

namespace reformer::cli {
namespace {

const std::vector<RepeatPoint> kPoints = {{1024, 0.46, 1.31, 1.301},
                                          {32768, 1.11, 1.32, 1.302}};

TEST(RepeatTable, HasALineForEachDistance) {
  EXPECT_EQ(repeat_table(kPoints),
            "  distance    repeat  first occurrence   no copy\n"
            "      1024    0.4600            1.3100    1.3010\n"
            "     32768    1.1100            1.3200    1.3020\n");
}

TEST(RepeatScript, DrawsBothOccurrencesAgainstTheDistance) {
  const std::string script = repeat_script(
      {{"8 rounds", kPoints}, {"2 rounds", kPoints}}, "title", "bits");
  const auto expect_contains = [&](const std::string& part) {
    EXPECT_NE(script.find(part), script.npos) << part << " in " << script;
  };
  expect_contains("set logscale x 2\n");
  expect_contains("$curve0 << EOD\n1024 0.46\n32768 1.11\nEOD\n");
  expect_contains("$curve1 << EOD\n1024 1.31\n32768 1.32\nEOD\n");
  expect_contains("title 'repeat, 8 rounds'");
  expect_contains("title 'first occurrence, 8 rounds'");
  expect_contains("title 'first occurrence, 2 rounds'");
}

}  // namespace
}  // namespace reformer::cli
