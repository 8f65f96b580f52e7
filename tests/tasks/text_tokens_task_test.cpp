// `text` with a tokenizer.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "reformer/data/text_tokens.h"
#include "reformer/tasks/task_tokenizer.h"
#include "reformer/tasks/text.h"
#include "tests/data/small_tokenizer.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

class TextTokensTaskTest : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_SENTENCEPIECE(); }

  std::string put(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  static std::string text() {
    std::string all;
    for (const auto& line : small_lines()) all += line + "\n";
    return all;
  }

  Config config_for(const std::string& text) const {
    Config config;
    config.task.data = put("text", text);
    config.task.tokenizer = put("small.model", small_model());
    config.task.cache = folder_ / "cache";
    config.model.vocabulary = small_tokenizer()->vocabulary_size();
    config.train.length = 32;
    config.train.batch = 3;
    return config;
  }

  static std::vector<int64_t> counted(const Task& task, Split split) {
    std::vector<int64_t> tokens;
    for (int64_t i = 0; i < task.evaluation_batches(split); ++i) {
      const auto batch = task.evaluation_batch(split, i);
      const auto real = batch.tokens.masked_select(batch.loss_mask);
      const auto* begin = real.const_data_ptr<int64_t>();
      tokens.insert(tokens.end(), begin, begin + real.numel());
    }
    return tokens;
  }

  TemporaryFolder folder_;
};

TEST_F(TextTokensTaskTest, SplitsAreTheTextInOrder) {
  const auto task = make_task(config_for(text()));
  const TextTokens tokens(task->tokenizer());
  const auto validation = tokens.decode(counted(*task, Split::kValidation));
  const auto test = tokens.decode(counted(*task, Split::kTest));
  const std::string whole = text();
  EXPECT_TRUE(whole.ends_with(validation + test));
  EXPECT_NEAR(double(validation.size()), 0.05 * double(whole.size()), 100);
  EXPECT_NEAR(double(test.size()), 0.05 * double(whole.size()), 100);
  const auto window = task->training_batch(4).tokens[1].contiguous();
  const std::string piece =
      tokens.decode({window.const_data_ptr<int64_t>(), 32});
  EXPECT_NE(whole.find(piece.substr(piece.find('\n') + 1)), std::string::npos);
}

// A loss of so many bits a token, over all tokens of the split, is so many bits
// over all of its bytes.
TEST_F(TextTokensTaskTest, BitsPerByteAreThoseOfTheSplit) {
  const auto task = make_task(config_for(text()));
  const TextTokens tokens(task->tokenizer());
  for (const auto split : {Split::kValidation, Split::kTest}) {
    const auto all = counted(*task, split);
    const double bytes = double(tokens.decode(all).size());
    const double nats = 1.75;
    EXPECT_DOUBLE_EQ(task->metric_of(nats, split),
                     nats * double(all.size()) / std::log(2.0) / bytes);
  }
  EXPECT_EQ(task->metric_name(), "bits per byte");
}

TEST_F(TextTokensTaskTest, SplitsOfTheirOwnAreTokenizedToo) {
  auto config = config_for(text());
  config.task.validation = put("validation", "the house\non a hill");
  const auto task = make_task(config);
  const TextTokens tokens(task->tokenizer());
  EXPECT_EQ(tokens.decode(counted(*task, Split::kValidation)),
            "the house\non a hill");
}

TEST_F(TextTokensTaskTest, TheTokenizerIsPartOfTheDatasIdentity) {
  const auto task = make_task(config_for(text()));
  const auto data = task->data();
  ASSERT_EQ(data.size(), 2U);
  EXPECT_EQ(data[1].setting, "task.tokenizer");
  EXPECT_EQ(data[1].bytes, std::ssize(small_model()));
}

TEST_F(TextTokensTaskTest, TheVocabularyIsTheTokenizers) {
  auto config = config_for(text());
  config.model.vocabulary = 256;
  EXPECT_THROW(make_task(config), Error);
  DecodeObserver nobody;
  task_tokenizer(config, nobody);
  EXPECT_EQ(config.model.vocabulary, 330);
  EXPECT_NE(make_task(config), nullptr);
}

}  // namespace
}  // namespace reformer
