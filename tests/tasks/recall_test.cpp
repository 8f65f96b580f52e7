#include "reformer/tasks/recall.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "reformer/base/errors.h"
#include "tests/tasks/drawn_task_checks.h"

namespace reformer {
namespace {

Config small_config() {
  Config config;
  config.task.name = "recall";
  config.task.alphabet = 11;
  config.task.key_length = 2;
  config.model.vocabulary = 22;
  config.train.length = 301;
  config.train.batch = 5;
  return config;
}

struct Row {
  const int64_t* tokens;
  const bool* loss_mask;
  const int64_t* distances;
};

Row row_of(const Batch& batch, int64_t row) {
  const int64_t at = row * batch.tokens.size(1);
  return {batch.tokens.const_data_ptr<int64_t>() + at,
          batch.loss_mask.const_data_ptr<bool>() + at,
          batch.distances.const_data_ptr<int64_t>() + at};
}

struct Seen {
  int64_t value;
  int64_t position;  // of the value
};

// Reads a sequence as a model would, knowing nothing but which tokens are
// keys': after a run of those it says what came after the same run before.
// Expects to be right wherever the loss counts, and to have been asked.
void expect_found_by_reading(const Row& row, const Config& config) {
  const int64_t tokens = config.task.alphabet;
  std::map<std::vector<int64_t>, Seen> seen;
  std::vector<int64_t> run;
  int64_t asked = 0;
  for (int64_t i = 0; i < config.train.length; ++i) {
    const int64_t token = row.tokens[i];
    ASSERT_TRUE(token >= 0 && token < 2 * tokens);
    if (token >= tokens) {
      run.push_back(token);
      ASSERT_FALSE(row.loss_mask[i]);
      ASSERT_EQ(row.distances[i], 0);
      continue;
    }
    const auto before = seen.find(run);
    ASSERT_EQ(row.loss_mask[i], before != seen.end()) << i;
    if (row.loss_mask[i]) {
      EXPECT_EQ(token, before->second.value) << i;
      EXPECT_EQ(row.distances[i], i - before->second.position) << i;
      before->second.value = -1;  // nobody asks twice
      ++asked;
    } else {
      EXPECT_EQ(row.distances[i], 0);
    }
    if (!run.empty() && before == seen.end()) {
      ASSERT_EQ(int64_t(run.size()), config.task.key_length);
      seen[run] = {token, i};
    }
    run.clear();
  }
  EXPECT_EQ(asked, recall_pairs(config));
  EXPECT_EQ(int64_t(seen.size()), asked);  // every pair is asked for
}

TEST(RecallTask, WhoReadsTheSequenceKnowsEverythingThatCounts) {
  for (const int64_t key_length : {1, 2, 3}) {
    for (const int64_t length : {8, 33, 301, 1000}) {
      auto config = small_config();
      config.task.key_length = key_length;
      config.task.alphabet = key_length == 1 ? 200 : 20;
      config.model.vocabulary = 2 * config.task.alphabet;
      config.train.length = length;
      const auto task = make_task(config);
      for (const auto& batch : {task->training_batch(3),
                                task->evaluation_batch(Split::kValidation, 0),
                                task->evaluation_batch(Split::kTest, 0)}) {
        ASSERT_EQ(batch.tokens.sizes(), at::IntArrayRef({5, length}));
        ASSERT_EQ(batch.loss_mask.sizes(), batch.tokens.sizes());
        ASSERT_EQ(batch.distances.sizes(), batch.tokens.sizes());
        for (int64_t row = 0; row < 5; ++row) {
          expect_found_by_reading(row_of(batch, row), config);
        }
      }
    }
  }
}

// As many keys as there may be pairs: all are used, none twice.
TEST(RecallTask, KeysAreDistinctHoweverFewThereAre) {
  auto config = small_config();
  config.task.alphabet = 6;
  config.train.length = 3 * 90 + 2;  // 36 pairs, as many as keys
  ASSERT_EQ(recall_pairs(config), 36);
  const auto batch = make_task(config)->training_batch(0);
  for (int64_t row = 0; row < 5; ++row) {
    expect_found_by_reading(row_of(batch, row), config);
  }
}

TEST(RecallTask, AMillionTokensAreASequenceLikeOthers) {
  auto config = small_config();
  config.task.alphabet = 512;
  config.model.vocabulary = 1024;
  config.train.length = 1 << 20;
  config.train.batch = 1;
  const auto batch = make_task(config)->training_batch(0);
  expect_found_by_reading(row_of(batch, 0), config);
  EXPECT_GT(batch.loss_mask.sum().item<int64_t>(), 100000);
  EXPECT_GT(batch.distances.max().item<int64_t>(), 900000);
}

TEST(RecallTask, EveryOctaveOfDistancesIsAboutAsFrequent) {
  auto config = small_config();
  config.task.alphabet = 100;
  config.model.vocabulary = 200;
  config.train.length = 3 * 1025;  // distances of 1 to 1024 slots
  config.train.batch = 20;
  const auto batch = make_task(config)->training_batch(0);
  std::map<int, int> count;
  int all = 0;
  for (int64_t row = 0; row < 20; ++row) {
    for (int64_t i = 0; i < config.train.length; ++i) {
      const int64_t distance = row_of(batch, row).distances[i];
      if (distance == 0) continue;
      EXPECT_EQ(distance % 3, 0);
      ++count[std::bit_width(uint64_t(distance / 3))];
      ++all;
    }
  }
  ASSERT_EQ(count.size(), 11u);
  for (const auto& [octave, n] : count) {
    // The last has one distance alone, between the first slot and the last.
    if (octave == 11) continue;
    EXPECT_NEAR(n, all / 10.0, 0.15 * all / 10.0) << octave;
  }
}

TEST(RecallTask, ValuesAreAboutAsFrequentInQueriesAndInFiller) {
  auto config = small_config();
  config.train.length = 290;  // 38 pairs
  config.train.batch = 200;
  const auto batch = make_task(config)->training_batch(0);
  std::vector<double> asked(11);
  std::vector<double> others(11);
  for (int64_t row = 0; row < 200; ++row) {
    const auto [tokens, loss_mask, distances] = row_of(batch, row);
    for (int64_t i = 0; i < config.train.length; ++i) {
      if (tokens[i] >= 11) continue;
      ++(loss_mask[i] ? asked : others)[size_t(tokens[i])];
    }
  }
  for (size_t value = 0; value < 11; ++value) {
    EXPECT_NEAR(asked[value], 200 * 38 / 11.0, 0.15 * 200 * 38 / 11.0);
    EXPECT_NEAR(others[value], 200 * (290 - 5 * 38) / 11.0,
                0.15 * 200 * (290 - 5 * 38) / 11.0);
  }
}

TEST(RecallTask, ABatchIsAFunctionOfSeedAndIndex) {
  auto config = small_config();
  const auto task = make_task(config);
  const auto batch = task->training_batch(7);
  task->training_batch(8);
  const auto again = make_task(config)->training_batch(7);
  EXPECT_TRUE(at::equal(batch.tokens, again.tokens));
  EXPECT_TRUE(at::equal(batch.loss_mask, again.loss_mask));
  EXPECT_TRUE(at::equal(batch.distances, again.distances));
  EXPECT_FALSE(at::equal(batch.loss_mask, task->training_batch(8).loss_mask));
  config.train.seed = 1;
  EXPECT_FALSE(
      at::equal(batch.tokens, make_task(config)->training_batch(7).tokens));
}

TEST(RecallTask, NoRowIsDrawnTwice) {
  drawn_task::expect_no_row_twice(small_config());
}

TEST(RecallTask, ASplitHasTheSameExamplesInBatchesOfAnySize) {
  drawn_task::expect_same_examples_in_any_batch(small_config(),
                                                RecallTask::kExamples);
}

TEST(RecallTask, TheMetricIsTheLoss) {
  const auto task = make_task(small_config());
  EXPECT_EQ(task->metric_name(), "loss");
  EXPECT_EQ(task->metric_of(0.25), 0.25);
}

}  // namespace
}  // namespace reformer
