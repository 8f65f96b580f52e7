#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "reformer/base/errors.h"
#include "reformer/optim/optimizer.h"

namespace reformer {
namespace {

TrainConfig config_of(const std::string& schedule, int64_t warmup) {
  TrainConfig config;
  config.schedule = schedule;
  config.warmup = warmup;
  config.learning_rate = 0.5;
  config.steps = 100;
  return config;
}

TEST(LearningRate, RisesInAStraightLineDuringTheWarmUp) {
  for (const char* schedule : {"constant", "rsqrt", "cosine"}) {
    const auto config = config_of(schedule, 20);
    const double slope = learning_rate_at(config, 1);
    EXPECT_GT(slope, 0);
    for (int64_t t = 1; t <= 20; ++t) {
      EXPECT_NEAR(learning_rate_at(config, t), slope * t, 1e-15) << schedule;
    }
  }
}

TEST(LearningRate, NeverRisesAfterTheWarmUp) {
  for (const char* schedule : {"constant", "rsqrt", "cosine"}) {
    for (const int64_t warmup : {0, 1, 20, 100}) {
      const auto config = config_of(schedule, warmup);
      for (int64_t t = std::max<int64_t>(warmup, 1); t <= 120; ++t) {
        EXPECT_LE(learning_rate_at(config, t + 1), learning_rate_at(config, t))
            << schedule << ", warm-up " << warmup << ", step " << t;
      }
    }
  }
}

// No step after the warm-up differs from the one before by more than the last
// of the warm-up did.
TEST(LearningRate, DoesNotJumpWhereTheWarmUpEnds) {
  for (const char* schedule : {"constant", "rsqrt", "cosine"}) {
    const auto config = config_of(schedule, 20);
    const double rise = learning_rate_at(config, 1);
    for (int64_t t = 20; t < 120; ++t) {
      EXPECT_LE(std::abs(learning_rate_at(config, t + 1) -
                         learning_rate_at(config, t)),
                rise)
          << schedule << ", step " << t;
    }
  }
}

TEST(LearningRate, IsTheFactorFromTheFirstStepWithoutWarmUp) {
  for (const char* schedule : {"constant", "rsqrt"}) {
    EXPECT_DOUBLE_EQ(learning_rate_at(config_of(schedule, 0), 1), 0.5);
  }
  EXPECT_NEAR(learning_rate_at(config_of("cosine", 0), 1), 0.5, 1e-3);
}

TEST(LearningRate, HasTheFormulasValues) {
  EXPECT_DOUBLE_EQ(learning_rate_at(config_of("constant", 20), 1000), 0.5);
  const auto rsqrt = config_of("rsqrt", 16);
  EXPECT_DOUBLE_EQ(learning_rate_at(rsqrt, 4), 0.5 * 0.25 / 4);
  EXPECT_DOUBLE_EQ(learning_rate_at(rsqrt, 16), 0.5 / 4);
  EXPECT_DOUBLE_EQ(learning_rate_at(rsqrt, 64), 0.5 / 8);
  const auto cosine = config_of("cosine", 20);
  EXPECT_DOUBLE_EQ(learning_rate_at(cosine, 20), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_at(cosine, 60), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_at(cosine, 100), 0);
  EXPECT_DOUBLE_EQ(learning_rate_at(cosine, 101), 0);
}

TEST(LearningRate, RefusesAnUnknownSchedule) {
  EXPECT_THROW(learning_rate_at(config_of("linear", 0), 1), Error);
}

TEST(Schedule, TheCosineEndsWithTheTime) {
  auto config = config_of("cosine", 10);
  config.steps = 1000000;
  double before = learning_rate_at(config, 20, 0.1);
  for (const double share : {0.3, 0.7, 0.99}) {
    const double rate = learning_rate_at(config, 20, share);
    EXPECT_LT(rate, before) << share;
    before = rate;
  }
  EXPECT_NEAR(learning_rate_at(config, 20, 1), 0, 1e-12);
  EXPECT_NEAR(learning_rate_at(config, 20, 1.5), 0, 1e-12);
  for (const char* other : {"constant", "rsqrt"}) {
    config.schedule = other;
    EXPECT_EQ(learning_rate_at(config, 20, 0.9), learning_rate_at(config, 20));
  }
}

}  // namespace
}  // namespace reformer
