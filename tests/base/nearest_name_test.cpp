#include "reformer/base/nearest_name.h"

#include <gtest/gtest.h>

#include <optional>

namespace reformer {
namespace {

TEST(NearestName, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(nearest_name("abcde", {"e", "abcxx"}), "abcxx");
  EXPECT_EQ(nearest_name("abcde", {"a", "xxcde"}), "xxcde");
  EXPECT_EQ(nearest_name("abc", {"abcdefg", "xbx"}), "xbx");
  EXPECT_EQ(nearest_name("kitten", {"mitten", "kitten", "sitting"}), "kitten");
  EXPECT_EQ(nearest_name("", {"long", "ab"}), "ab");
}

TEST(NearestName, OfEqualsTheFirstIsTaken) {
  EXPECT_EQ(nearest_name("ab", {"ax", "xb"}), "ax");
  EXPECT_EQ(nearest_name("ab", {"xb", "ax"}), "xb");
}

TEST(NearestName, ANameWithoutADotMeansWhatFollowsTheDot) {
  EXPECT_EQ(nearest_name("rounds", {"rounded.x", "lsh.rounds"}), "lsh.rounds");
  EXPECT_EQ(nearest_name("lsh.round", {"rounds", "lsh.rounds"}), "lsh.rounds");
}

TEST(NearestName, TheSameNameInAnotherSectionIsMeant) {
  EXPECT_EQ(nearest_name("train.block", {"train.batch", "model.block"}),
            "model.block");
  EXPECT_EQ(nearest_name("model.rounds", {"model.bounds", "lsh.rounds"}),
            "lsh.rounds");
}

TEST(NearestName, WhatIsFarFromAllHasNone) {
  EXPECT_EQ(nearest_name("foo", {"task.name", "lsh.rounds"}), std::nullopt);
  EXPECT_EQ(nearest_name("bla.x", {"task.name", "lsh.n"}), std::nullopt);
  EXPECT_EQ(nearest_hint("foo", {"task.name"}), "");
  EXPECT_EQ(nearest_hint("nme", {"task.name"}), ", the nearest is task.name");
  EXPECT_EQ(nearest_name("evaluate_evry_x", {"train.evaluate_every"}),
            "train.evaluate_every");
}

}  // namespace
}  // namespace reformer
