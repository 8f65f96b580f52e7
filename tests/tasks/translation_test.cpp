#include "reformer/tasks/translation.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "reformer/base/errors.h"
#include "reformer/tasks/bitext_splits.h"
#include "reformer/tasks/task_tokenizer.h"
#include "tests/data/small_tokenizer.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

class TranslationTaskTest : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_SENTENCEPIECE(); }

  std::string put(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  // small_lines, and as their translations the same lines backwards in order.
  Config config_for(size_t pairs) const {
    std::string source;
    std::string target;
    for (size_t i = 0; i < pairs; ++i) {
      source += small_lines()[i] + "\n";
      target += small_lines()[pairs - 1 - i] + "\n";
    }
    Config config;
    config.task.name = TaskKind::kTranslation;
    config.task.data = put("a.en", source) + "," + put("a.de", target);
    config.task.tokenizer = put("small.model", small_model());
    config.task.cache = folder_ / "cache";
    config.model.vocabulary = small_tokenizer()->vocabulary_size();
    config.model.encoder_layers = 1;
    config.train.length = 40;
    config.train.batch_tokens = 400;
    return config;
  }

  // How often each source line comes in batches [begin, end).
  static std::map<std::string, int> sources(const Task& task, int64_t begin,
                                            int64_t end) {
    std::map<std::string, int> count;
    for (int64_t i = begin; i < end; ++i) {
      const auto batch = task.training_batch(i);
      for (int64_t row = 0; row < batch.source.size(0); ++row) {
        ++count[row_of(*task.tokenizer(), batch.source[row],
                       batch.source_mask[row])];
      }
    }
    return count;
  }

  static std::string row_of(const Tokenizer& tokenizer, const at::Tensor& row,
                            const at::Tensor& mask) {
    const auto real = row.masked_select(mask);
    EXPECT_EQ(real[-1].item<int64_t>(), tokenizer.end_token());
    EXPECT_EQ(row.masked_select(~mask).sum().item<int64_t>(), 0);
    EXPECT_FALSE(mask[0].item<bool>() == false);
    return tokenizer.decode(
        {real.const_data_ptr<int64_t>(), size_t(real.numel())});
  }

  struct Warnings : DecodeObserver {
    void warned(const std::string& sentence) override {
      all += sentence + "\n";
    }
    std::string all;
  };

  TemporaryFolder folder_;
};

TEST_F(TranslationTaskTest, AnEpochIsEveryPairOnceAndItsTranslation) {
  const auto config = config_for(200);
  const auto task = make_task(config);
  const auto sizes = task->sizes();
  EXPECT_EQ(sizes.training, 180);
  EXPECT_EQ(sizes.validation, 10);
  EXPECT_EQ(sizes.test, 10);
  int64_t pairs = 0;
  const int64_t epoch = task->epoch_batches();
  for (const auto& [line, count] : sources(*task, 0, epoch)) pairs += count;
  EXPECT_EQ(pairs, 180);
  EXPECT_EQ(sources(*task, 0, epoch), sources(*task, epoch, 2 * epoch));
}

TEST_F(TranslationTaskTest, RowsArePairsWithTheirEnds) {
  const auto config = config_for(200);
  const auto task = make_task(config);
  std::multimap<std::string, std::string> pairs;
  for (size_t i = 0; i < 200; ++i) {
    pairs.emplace(small_lines()[i], small_lines()[199 - i]);
  }
  for (int64_t i = 0; i < 5; ++i) {
    const auto batch = task->training_batch(i);
    EXPECT_LE(
        batch.source.size(0) * (batch.source.size(1) + batch.tokens.size(1)),
        400);
    for (int64_t row = 0; row < batch.source.size(0); ++row) {
      const auto source =
          row_of(*task->tokenizer(), batch.source[row], batch.source_mask[row]);
      const auto target =
          row_of(*task->tokenizer(), batch.tokens[row], batch.loss_mask[row]);
      bool found = false;
      const auto [begin, end] = pairs.equal_range(source);
      for (auto at = begin; at != end; ++at) found |= at->second == target;
      EXPECT_TRUE(found) << source << " -> " << target;
    }
  }
}

// What a run that goes on in the middle of an epoch needs.
TEST_F(TranslationTaskTest, ABatchIsAFunctionOfConfigAndIndex) {
  const auto config = config_for(200);
  const auto task = make_task(config);
  const auto again = make_task(config);
  (void)again->training_batch(3);
  auto other_seed = config;
  other_seed.train.seed = 1;
  const auto other = make_task(other_seed);
  bool differs = false;
  for (const int64_t i : {57, 3, 20}) {
    const auto a = task->training_batch(i);
    const auto b = again->training_batch(i);
    EXPECT_TRUE(at::equal(a.tokens, b.tokens));
    EXPECT_TRUE(at::equal(a.source, b.source));
    EXPECT_TRUE(at::equal(a.loss_mask, b.loss_mask));
    EXPECT_TRUE(at::equal(a.source_mask, b.source_mask));
    const auto c = other->training_batch(i);
    differs |= !at::equal(a.source, c.source);
  }
  EXPECT_TRUE(differs);
}

TEST_F(TranslationTaskTest, EvaluationCoversItsSplitOnce) {
  auto config = config_for(200);
  const auto data = put("v.en", "the house\n\na hill\n") + "," +
                    put("v.de", "haus\nberg\nder berg\n");
  config.task.validation = data;
  Warnings warnings;
  const TranslationTask task(config, small_tokenizer(), warnings);
  EXPECT_EQ(task.sizes().training, 190);  // only the test is held out
  EXPECT_EQ(task.sizes().validation, 2);
  EXPECT_EQ(warnings.all,
            "validation: of 3 pairs are left out: 1 with a side that is empty "
            "or not UTF-8\n");
  int64_t rows = 0;
  for (int64_t i = 0; i < task.evaluation_batches(Split::kValidation); ++i) {
    rows += task.evaluation_batch(Split::kValidation, i).tokens.size(0);
  }
  EXPECT_EQ(rows, 2);
  // Whoever counts lines finds all of them.
  const auto lines = task.lines(Split::kValidation);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1].source, "");
  EXPECT_EQ(lines[1].target, "berg");
  EXPECT_EQ(task.lines(Split::kTest).size(), 10U);
}

TEST_F(TranslationTaskTest, PairsTooLongAreCounted) {
  auto config = config_for(200);
  config.train.length = 9;
  config.train.batch_tokens = 0;
  config.train.batch = 16;
  Warnings warnings;
  const TranslationTask task(config, small_tokenizer(), warnings);
  EXPECT_NE(warnings.all.find("of more than train.length = 9 tokens"),
            std::string::npos);
  EXPECT_LT(task.sizes().training, 180);
  for (int64_t i = 0; i < task.epoch_batches(); ++i) {
    const auto batch = task.training_batch(i);
    EXPECT_LE(batch.source.size(1), 9);
    EXPECT_LE(batch.tokens.size(1), 9);
    EXPECT_LE(batch.tokens.size(0), 16);
  }
}

TEST_F(TranslationTaskTest, ATokenizerIsMadeOfTheTrainingPairs) {
  auto config = config_for(200);
  config.task.tokenizer = "";
  config.model.vocabulary = 32000;
  DecodeObserver nobody;
  const auto tokenizer = task_tokenizer(config, nobody);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_LT(config.model.vocabulary, 1000);  // what the data allows
  EXPECT_EQ(config.model.vocabulary, tokenizer->vocabulary_size());
  EXPECT_EQ(tokenizer->encode("the garden").size(), 2U);
  auto again = config;
  again.model.vocabulary = 32000;
  EXPECT_EQ(task_tokenizer(again, nobody)->file(), tokenizer->file());
  const TranslationTask task(config, tokenizer, nobody);
  EXPECT_EQ(task.data().back().setting, "task.tokenizer");
  EXPECT_EQ(run_tokenizer(config, tokenizer->file())->file(),
            tokenizer->file());
}

TEST_F(TranslationTaskTest, AMadeTokenizerKnowsNothingOfHeldOutPairs) {
  auto config = config_for(200);
  config.task.tokenizer = "";
  const auto splits = bitext_splits(
      config.task, std::string(200, static_cast<char>(BitextSplit::kTrain)));
  std::string lines;
  for (size_t i = 0; i < 200; ++i) {
    const bool kept = splits[i] != BitextSplit::kTrain;
    lines += (kept ? "§§ §§§ §" : small_lines()[i]) + "\n";
  }
  config.task.data = put("b.en", lines) + "," + put("b.de", lines);
  DecodeObserver nobody;
  const auto tokenizer = task_tokenizer(config, nobody);
  EXPECT_EQ(tokenizer->encode("the garden").size(), 2U);
  EXPECT_GE(tokenizer->encode("§§").size(), 4U);  // byte by byte
}

TEST_F(TranslationTaskTest, WhatDoesNotFitIsRefused) {
  auto config = config_for(200);
  config.model.vocabulary = 256;
  EXPECT_THROW(make_task(config), Error);
  config = config_for(200);
  config.train.batch_tokens = 79;
  EXPECT_THROW(make_task(config), Error);
  config = config_for(200);
  config.task.target_language = "en";
  EXPECT_THROW(make_task(config), Error);
  config = config_for(200);
  config.task.data = "";
  EXPECT_THROW(make_task(config), Error);
  EXPECT_THROW(run_tokenizer(config_for(200), ""), Error);
}

TEST_F(TranslationTaskTest, PerplexityIsTheLossToThePower) {
  const auto task = make_task(config_for(200));
  EXPECT_EQ(task->metric_name(), "perplexity");
  EXPECT_DOUBLE_EQ(task->metric_of(std::log(7.0)), 7.0);
}

}  // namespace
}  // namespace reformer
