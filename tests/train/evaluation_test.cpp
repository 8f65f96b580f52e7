#include "reformer/train/evaluation.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "reformer/base/errors.h"
#include "tests/model/small_model.h"

namespace reformer {
namespace {

Config recall_config(const std::string& block) {
  auto config = small_config_of("lsh,local");
  config.task.name = "recall";
  config.task.alphabet = 9;
  config.model.block = block;
  config.train.length = 101;
  config.train.batch = 10;
  return config;
}

// A pass for each octave, the head at every position.
LossSums plain_sums(const LanguageModel& model, const Task& task, int64_t begin,
                    int64_t end, int64_t batches) {
  LossSums sums;
  for (int64_t i = 0; i < batches; ++i) {
    const auto batch = task.evaluation_batch(Split::kTest, i);
    const auto within =
        batch.distances.ge(begin).logical_and(batch.distances.lt(end));
    const Pass pass{uint64_t(model.config().train.seed), 0, false,
                    /*rounds=*/2};
    sums += model.evaluate(batch.tokens, within, pass);
  }
  return sums;
}

TEST(SumsByDistance, AreThoseOfTheTokensThatLieSoFarBack) {
  for (const char* block : {"reversible", "residual"}) {
    const auto config = recall_config(block);
    const auto task = make_task(config);
    LanguageModel model(config);
    shake(model, 0.3);
    const auto found = sums_by_distance(model, *task, {Split::kTest, 3, 2});
    std::vector<int64_t> begins;
    LossSums all;
    for (const auto& [begin, end, sums] : found) {
      begins.push_back(begin);
      EXPECT_EQ(end, 2 * begin);
      const auto plain = plain_sums(model, *task, begin, end, 3);
      EXPECT_EQ(sums.count, plain.count);
      EXPECT_EQ(sums.correct, plain.correct);
      EXPECT_NEAR(sums.loss, plain.loss, 1e-4 * plain.loss);
      all += sums;
    }
    EXPECT_EQ(begins, (std::vector<int64_t>{2, 4, 8, 16, 32, 64}));
    const auto whole = evaluate(model, *task, {Split::kTest, 3, 2});
    EXPECT_NEAR(all.mean_loss(), whole.loss, 1e-5);
    EXPECT_EQ(all.accuracy(), whole.accuracy);
  }
}

TEST(SumsByDistance, ATaskWithoutDistancesIsAnError) {
  const auto config = small_config();
  EXPECT_THROW(sums_by_distance(LanguageModel(config), *make_task(config),
                                {Split::kTest, 1}),
               Error);
}

}  // namespace
}  // namespace reformer
