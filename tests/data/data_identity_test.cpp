#include "reformer/data/data_identity.h"

#include <gtest/gtest.h>

namespace reformer {
namespace {

const DataIdentity kData = {"task.data", 10, "aa"};
const DataIdentity kOther = {"task.data", 12, "bb"};
const DataIdentity kOwn = {"task.validation", 3, "cc"};

TEST(SameData, WhatIsAsItWasIsNoChange) {
  EXPECT_EQ(changed_data({kData}, {kData}), "");
  EXPECT_EQ(changed_data({kData, kOwn}, {kData, kOwn}), "");
  EXPECT_EQ(changed_data({}, {kData}), "");  // an older program's checkpoint
  EXPECT_EQ(changed_data({}, {}), "");
}

TEST(SameData, AChangeIsNamed) {
  EXPECT_EQ(changed_data({kData}, {kOther}),
            "task.data is 12 bytes of hash bb and was 10 bytes of hash aa");
  EXPECT_EQ(changed_data({kData}, {kData, kOwn}),
            "task.validation is 3 bytes of hash cc and was nothing of its own");
  EXPECT_EQ(changed_data({kData, kOwn}, {kData}),
            "task.validation is nothing of its own and was 3 bytes of hash cc");
}

}  // namespace
}  // namespace reformer
