#include "reformer/base/instruction_set.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

// Ends the process with what the first look at REFORMER_CPU gives.
[[noreturn]] void say_choice(const char* wanted) {
  setenv("REFORMER_CPU", wanted, /*overwrite=*/1);
  try {
    std::fprintf(stderr, "chose %s", name_of(instruction_set()).c_str());
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(1);
  }
  std::_Exit(0);
}

// The variable is read once, so each look needs a process of its own.
class InstructionSetDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(InstructionSetDeathTest, EnvironmentChoosesAmongTheSupported) {
  for (const auto set : supported_instruction_sets()) {
    const auto name = name_of(set);
    EXPECT_EXIT(say_choice(name.c_str()), testing::ExitedWithCode(0),
                "chose " + name);
  }
  const auto fastest = name_of(supported_instruction_sets().back());
  EXPECT_EXIT(say_choice(""), testing::ExitedWithCode(0), "chose " + fastest);
}

TEST_F(InstructionSetDeathTest, UnknownNameIsAnErrorThatListsTheKnown) {
  EXPECT_EXIT(say_choice("mmx"), testing::ExitedWithCode(1),
              "REFORMER_CPU: .*plain.*got 'mmx'");
}

TEST(InstructionSet, PlainIsAlwaysSupported) {
  EXPECT_EQ(supported_instruction_sets().front(), InstructionSet::kPlain);
}

TEST(InstructionSet, CanBeOverridden) {
  const auto before = instruction_set();
  for (const auto set : supported_instruction_sets()) {
    set_instruction_set(set);
    EXPECT_EQ(instruction_set(), set);
  }
  set_instruction_set(before);
}

}  // namespace
}  // namespace reformer
