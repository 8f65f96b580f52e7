#include "reformer/tasks/duplication.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "reformer/base/errors.h"
#include "tests/tasks/drawn_task_checks.h"

namespace reformer {
namespace {

Config small_config() {
  Config config;
  config.task.name = "duplication";
  config.task.alphabet = 6;
  config.train.length = 22;
  config.train.batch = 5;
  return config;
}

void expect_form(const Batch& batch, int64_t rows, const Config& config) {
  const int64_t length = config.train.length;
  ASSERT_EQ(batch.tokens.sizes(), at::IntArrayRef({rows, length}));
  ASSERT_EQ(batch.loss_mask.sizes(), at::IntArrayRef({rows, length}));
  ASSERT_EQ(batch.tokens.scalar_type(), at::kLong);
  ASSERT_EQ(batch.loss_mask.scalar_type(), at::kBool);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t* x = batch.tokens.const_data_ptr<int64_t>() + row * length;
    const bool* w = batch.loss_mask.const_data_ptr<bool>() + row * length;
    for (int64_t i = 0; i < length; ++i) {
      const bool separator = i % (length / 2) == 0;
      EXPECT_GE(x[i], separator ? 0 : 1);
      EXPECT_LE(x[i], separator ? 0 : config.task.alphabet);
      EXPECT_EQ(x[i], x[i % (length / 2)]);
      EXPECT_EQ(w[i], i >= length / 2);
    }
  }
}

TEST(DuplicationTask, BatchesAreASeparatorAndAWordTwice) {
  const auto config = small_config();
  const auto task = make_task(config);
  expect_form(task->training_batch(3), 5, config);
  expect_form(task->evaluation_batch(Split::kTest, 0), 5, config);
}

TEST(DuplicationTask, TheShortestWordHasOneToken) {
  auto config = small_config();
  config.train.length = 4;
  expect_form(make_task(config)->training_batch(0), 5, config);
}

TEST(DuplicationTask, EveryTokenIsAboutAsFrequent) {
  auto config = small_config();
  config.train.length = 10002;
  const auto batch = make_task(config)->training_batch(0);
  std::vector<int64_t> count(7);
  for (int64_t i = 0; i < batch.tokens.numel(); ++i) {
    ++count[size_t(batch.tokens.const_data_ptr<int64_t>()[i])];
  }
  const double expected = 5 * 10000 / 6.0;
  for (size_t token = 1; token <= 6; ++token) {
    EXPECT_NEAR(double(count[token]), expected, 0.07 * expected) << token;
  }
}

TEST(DuplicationTask, ABatchIsAFunctionOfSeedAndIndex) {
  auto config = small_config();
  const auto task = make_task(config);
  const auto batch = task->training_batch(7).tokens;
  task->training_batch(8);
  EXPECT_TRUE(at::equal(batch, task->training_batch(7).tokens));
  EXPECT_TRUE(at::equal(batch, make_task(config)->training_batch(7).tokens));
  EXPECT_FALSE(at::equal(batch, task->training_batch(8).tokens));
  const int64_t far = (int64_t{1} << 32) + 7;
  EXPECT_FALSE(at::equal(batch, task->training_batch(far).tokens));
  config.train.seed = 1;
  EXPECT_FALSE(at::equal(batch, make_task(config)->training_batch(7).tokens));
}

TEST(DuplicationTask, NoRowIsDrawnTwice) {
  drawn_task::expect_no_row_twice(small_config());
}

TEST(DuplicationTask, ASplitHasTheSameExamplesInBatchesOfAnySize) {
  drawn_task::expect_same_examples_in_any_batch(small_config(),
                                                DuplicationTask::kExamples);
}

TEST(DuplicationTask, TheMetricIsTheLoss) {
  const auto task = make_task(small_config());
  EXPECT_EQ(task->metric_name(), "loss");
  EXPECT_EQ(task->metric_of(0.25), 0.25);
}

TEST(MakeTask, ChecksTheConfig) {
  auto config = small_config();
  config.model.vocabulary = 6;
  EXPECT_THROW(make_task(config), Error);
}

}  // namespace
}  // namespace reformer
