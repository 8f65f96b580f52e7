#include "reformer/tasks/translation_toy.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <set>

#include "reformer/base/errors.h"
#include "reformer/tasks/task_tokenizer.h"
#include "reformer/tasks/toy_language.h"

namespace reformer {
namespace {

Config toy_config() {
  Config config;
  config.task.name = TaskKind::kTranslationToy;
  config.task.alphabet = 20;
  config.model.vocabulary = toy_vocabulary(config.task);
  config.model.encoder_layers = 1;
  config.train.length = 9;
  config.train.batch = 32;
  return config;
}

std::vector<int64_t> real(const at::Tensor& row, const at::Tensor& mask) {
  const auto tokens = row.masked_select(mask);
  const auto* begin = tokens.const_data_ptr<int64_t>();
  return {begin, begin + tokens.numel()};
}

TEST(ToyLanguage, WordsAreDifferentAndComeBack) {
  const auto language = toy_language(3600);
  std::set<std::string> words;
  for (int64_t i = 0; i < language->vocabulary_size(); ++i) {
    words.insert(language->piece(i));
  }
  EXPECT_EQ(words.size(), 3U + 2 * 3600);
  const std::vector<int64_t> tokens = {3, 70, 3602, 3603, kToyEnd};
  const std::string line = language->decode(tokens);
  EXPECT_EQ(language->encode(line),
            std::vector<int64_t>(tokens.begin(), tokens.end() - 1));
  EXPECT_EQ(language->encode("  baba nonsense </s> "),
            (std::vector<int64_t>{3, 0, 0}));
}

TEST(ToyLanguage, ATranslationIsTheReverseOfOtherWords) {
  const std::vector<int64_t> source = {3, 4, 5, 3};
  const auto target = toy_translation(source, 20);
  ASSERT_EQ(target.size(), 4U);
  EXPECT_EQ(target[0], target[3]);
  EXPECT_NE(target[1], target[2]);
  std::set<int64_t> words;
  for (int64_t word = 3; word < 23; ++word) {
    words.insert(toy_translation({word}, 20)[0]);
  }
  EXPECT_EQ(words.size(), 20U);
  EXPECT_EQ(*words.begin(), 23);
  EXPECT_EQ(*words.rbegin(), 42);
}

TEST(TranslationToy, RowsAreSentencesAndTheirTranslations) {
  const auto task = make_task(toy_config());
  std::set<size_t> lengths;
  for (int64_t i = 0; i < 4; ++i) {
    const auto batch = task->training_batch(i);
    ASSERT_EQ(batch.tokens.size(0), 32);
    for (int64_t row = 0; row < 32; ++row) {
      auto source = real(batch.source[row], batch.source_mask[row]);
      auto target = real(batch.tokens[row], batch.loss_mask[row]);
      EXPECT_EQ(source.back(), kToyEnd);
      EXPECT_EQ(target.back(), kToyEnd);
      source.pop_back();
      target.pop_back();
      EXPECT_EQ(target, toy_translation(source, 20));
      lengths.insert(source.size());
    }
  }
  EXPECT_EQ(*lengths.begin(), 1U);
  EXPECT_EQ(*lengths.rbegin(), 8U);
}

TEST(TranslationToy, ABatchIsAFunctionOfConfigAndIndex) {
  const auto task = make_task(toy_config());
  const auto again = make_task(toy_config());
  EXPECT_TRUE(at::equal(task->training_batch(5).source,
                        again->training_batch(5).source));
  const auto a = task->training_batch(5);
  const auto b = task->training_batch(6);
  EXPECT_FALSE(a.source.sizes() == b.source.sizes() &&
               at::equal(a.source, b.source));
}

TEST(TranslationToy, ExamplesDoNotDependOnTheBatch) {
  auto config = toy_config();
  const auto task = make_task(config);
  config.train.batch = 256;
  const auto whole =
      make_task(config)->evaluation_batch(Split::kTest, 0).source;
  EXPECT_EQ(task->evaluation_batches(Split::kTest), 8);
  const auto part = task->evaluation_batch(Split::kTest, 2);
  EXPECT_TRUE(at::equal(whole[2 * 32 + 7].narrow(0, 0, part.source.size(1)),
                        part.source[7]));
}

TEST(TranslationToy, NeedsNoFile) {
  auto config = toy_config();
  const auto tokenizer = run_tokenizer(config, "");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->vocabulary_size(), 43);
  EXPECT_TRUE(tokenizer->file().empty());
  config.model.vocabulary = 44;
  EXPECT_THROW(make_task(config), Error);
}

}  // namespace
}  // namespace reformer
