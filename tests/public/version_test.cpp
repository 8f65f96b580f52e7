#include "reformer/version.h"

#include <gtest/gtest.h>

#include <string>

namespace {

TEST(Version, PartsAreThoseOfTheWhole) {
  const std::string parts = std::to_string(REFORMER_VERSION_MAJOR) + "." +
                            std::to_string(REFORMER_VERSION_MINOR) + "." +
                            std::to_string(REFORMER_VERSION_PATCH);
  EXPECT_EQ(parts, REFORMER_VERSION);
  EXPECT_STREQ(reformer::version(), REFORMER_VERSION);
}

}  // namespace
