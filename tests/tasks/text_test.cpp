#include "reformer/tasks/text.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "reformer/base/errors.h"
#include "reformer/data/row_key.h"
#include "reformer/tasks/text_repeats.h"

namespace reformer {
namespace {

// Bytes in which every window of three is found at one place only.
std::string distinct_text(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    text[i] = static_cast<char>(i % 2 ? i / 2 % 256 : i / 512);
  }
  return text;
}

class TextTaskTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string written(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  Config config_for(const std::string& text, int64_t length,
                    int64_t batch) const {
    Config config;
    config.task.data = written("data", text);
    config.train.length = length;
    config.train.batch = batch;
    return config;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("text_task_test." + std::to_string(getpid()));
};

// The tokens that count, in order.
std::string counted(const Batch& batch) {
  std::string bytes;
  const auto* tokens = batch.tokens.const_data_ptr<int64_t>();
  const auto* loss_mask = batch.loss_mask.const_data_ptr<bool>();
  for (int64_t i = 0; i < batch.tokens.numel(); ++i) {
    if (loss_mask[i]) bytes += static_cast<char>(tokens[i]);
  }
  return bytes;
}

std::string evaluated(const Task& task, Split split) {
  std::string bytes;
  for (int64_t i = 0; i < task.evaluation_batches(split); ++i) {
    bytes += counted(task.evaluation_batch(split, i));
  }
  return bytes;
}

std::string row_of(const Batch& batch, int64_t row) {
  return counted(
      {batch.tokens[row].contiguous(), batch.loss_mask[row].contiguous()});
}

std::string error_of(const Config& config) {
  try {
    make_task(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(TextTaskTest, BytesMayStandBehindOtherTokens) {
  auto config = config_for(distinct_text(1000), 50, 2);
  const auto plain = make_task(config)->training_batch(3).tokens;
  config.task.byte_offset = 2;
  config.model.vocabulary = 258;
  EXPECT_TRUE(
      at::equal(make_task(config)->training_batch(3).tokens, plain + 2));
}

TEST_F(TextTaskTest, EvaluationCountsEveryByteOnceInOrder) {
  for (const size_t size : {20, 33, 1000, 1001, 1019, 4100}) {
    for (const int64_t length : {1, 7, 10}) {
      for (const int64_t batch : {1, 3}) {
        const auto text = distinct_text(size);
        const auto task = make_task(config_for(text, length, batch));
        const size_t train = size * 90 / 100;
        const size_t test = size * 95 / 100;
        EXPECT_EQ(evaluated(*task, Split::kValidation),
                  text.substr(train, test - train));
        EXPECT_EQ(evaluated(*task, Split::kTest), text.substr(test));
      }
    }
  }
}

TEST_F(TextTaskTest, EvaluationBatchesHaveFullSequences) {
  const auto task = make_task(config_for(distinct_text(1000), 7, 3));
  ASSERT_EQ(task->evaluation_batches(Split::kTest), 3);  // 50 = 2 * 21 + 8
  const auto first = task->evaluation_batch(Split::kTest, 0);
  const auto last = task->evaluation_batch(Split::kTest, 2);
  EXPECT_EQ(first.tokens.sizes(), at::IntArrayRef({3, 7}));
  EXPECT_EQ(last.tokens.sizes(), at::IntArrayRef({2, 7}));
  EXPECT_EQ(last.loss_mask.sizes(), at::IntArrayRef({2, 7}));
  EXPECT_EQ(counted(last).size(), 8u);
  EXPECT_EQ(first.tokens.scalar_type(), at::kLong);
  EXPECT_EQ(first.loss_mask.scalar_type(), at::kBool);
}

TEST_F(TextTaskTest, BytesAreTokensFrom0To255) {
  std::string text(100, '\xff');
  text[96] = '\0';
  const auto task = make_task(config_for(text, 5, 1));
  const auto tokens = task->evaluation_batch(Split::kTest, 0).tokens;
  EXPECT_EQ(tokens.min().item<int64_t>(), 0);
  EXPECT_EQ(tokens.max().item<int64_t>(), 255);
}

TEST_F(TextTaskTest, TrainingWindowsLieAnywhereInTheTrainingSplit) {
  const auto text = distinct_text(1000);
  const auto train = text.substr(0, 900);
  const auto task = make_task(config_for(text, 890, 4));
  std::vector<int> found(11);
  for (int64_t index = 0; index < 50; ++index) {
    const auto batch = task->training_batch(index);
    ASSERT_EQ(batch.tokens.sizes(), at::IntArrayRef({4, 890}));
    for (int64_t row = 0; row < 4; ++row) {
      const auto window = row_of(batch, row);
      ASSERT_EQ(window.size(), 890u);
      const size_t start = train.find(window);
      ASSERT_LE(start, 10u);
      ++found[start];
    }
  }
  for (size_t start = 0; start <= 10; ++start) {
    EXPECT_GT(found[start], 0) << start;  // 200 draws of 11
  }
}

TEST_F(TextTaskTest, ATrainingBatchIsAFunctionOfSeedAndIndex) {
  auto config = config_for(distinct_text(50000), 16, 3);
  const auto task = make_task(config);
  const auto batch = task->training_batch(7).tokens;
  task->training_batch(8);
  EXPECT_TRUE(at::equal(batch, task->training_batch(7).tokens));
  EXPECT_TRUE(at::equal(batch, make_task(config)->training_batch(7).tokens));
  EXPECT_FALSE(at::equal(batch, task->training_batch(8).tokens));
  EXPECT_FALSE(at::equal(batch[0], batch[1]));
  config.train.seed = 1;
  EXPECT_FALSE(at::equal(batch, make_task(config)->training_batch(7).tokens));
}

TEST_F(TextTaskTest, ASplitWithAFileOfItsOwnLeavesItsBytesToTraining) {
  const auto text = distinct_text(1000);
  auto config = config_for(text, 950, 1);
  config.task.validation = written("validation", "some other bytes");
  auto task = make_task(config);
  EXPECT_EQ(evaluated(*task, Split::kValidation), "some other bytes");
  EXPECT_EQ(evaluated(*task, Split::kTest), text.substr(950));
  EXPECT_EQ(counted(task->training_batch(0)), text.substr(0, 950));

  config.task.test = written("test", "t");
  config.train.length = 1000;
  task = make_task(config);
  EXPECT_EQ(evaluated(*task, Split::kTest), "t");
  EXPECT_EQ(counted(task->training_batch(0)), text);

  config.task.validation = "";
  config.train.length = 950;
  EXPECT_EQ(evaluated(*make_task(config), Split::kValidation),
            text.substr(950));
}

TEST_F(TextTaskTest, TheMetricIsBitsPerByte) {
  const auto task = make_task(config_for(distinct_text(100), 8, 1));
  EXPECT_EQ(task->metric_name(), "bits per byte");
  EXPECT_DOUBLE_EQ(task->metric_of(std::log(256.0)), 8.0);
}

TEST_F(TextTaskTest, ATextShorterThanASequenceIsAnError) {
  const auto config = config_for(distinct_text(100), 91, 1);
  EXPECT_EQ(error_of(config),
            config.task.data +
                ": a text of 100 bytes, 90 of them for training, is shorter "
                "than one sequence, train.length = 91");
  EXPECT_EQ(error_of(config_for(distinct_text(100), 90, 1)), "no error");
}

TEST_F(TextTaskTest, MistakenFilesAreErrors) {
  auto config = config_for("x", 1, 1);
  config.task.data = "";
  EXPECT_NE(error_of(config).find("task.data: a file"), std::string::npos);
  config.task.data = config.task.test = "-";
  EXPECT_NE(error_of(config).find("only one of them"), std::string::npos);
  config = config_for(distinct_text(10), 1, 1);
  EXPECT_NE(error_of(config).find("task.validation: 5% of"), std::string::npos);
  config.task.validation = folder_ / "missing";
  EXPECT_NE(error_of(config).find("missing: No such file"), std::string::npos);
}

// A file with holes may claim 2^57 bytes, and 95 times that is too much.
TEST_F(TextTaskTest, TheLongestFilesAreSplitAsOthersAre) {
  auto config = config_for("x", 33, 3);
  const std::string path =  // on a disk files are shorter
      "/dev/shm/text_task_test." + std::to_string(getpid());
  std::ofstream(path) << "x";
  std::error_code too_long;
  const int64_t size = int64_t{1} << 57;
  std::filesystem::resize_file(path, size, too_long);
  if (too_long) {
    std::filesystem::remove(path);
    GTEST_SKIP() << "no such file is to be had here: " << too_long.message();
  }
  config.task.data = path;
  DecodeObserver nobody;
  const TextTask task(config, nobody);
  std::filesystem::remove(path);  // it is open
  EXPECT_NEAR(double(task.evaluation_batches(Split::kTest)),
              double(size) / 20 / 99, 2);
  EXPECT_EQ(counted(task.training_batch(0)), std::string(99, '\0'));
}

// Of everything that a run reads, wherever its bytes come from.
TEST_F(TextTaskTest, TheSameBytesHaveTheSameIdentityAndOthersAnother) {
  const std::string text = distinct_text(700'000);
  const auto identity = [&](const Config& config) {
    DecodeObserver nobody;
    return TextTask(config, nobody).data();
  };
  auto config = config_for(text, 64, 2);
  const auto whole = identity(config);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].setting, "task.data");
  EXPECT_EQ(whole[0].bytes, 700'000);
  config.task.cache = folder_ / "cache";
  std::filesystem::create_directory(folder_ / "parts");
  written("parts/a", text.substr(0, 100));
  written("parts/b", text.substr(100));
  config.task.data = folder_ / "parts";
  EXPECT_EQ(identity(config), whole);
  for (const size_t at : {0ul, 300'000ul, text.size() - 1}) {
    std::string other = text;
    other[at] ^= 1;
    EXPECT_NE(identity(config_for(other, 64, 2)), whole) << at;
  }
  config = config_for(text, 64, 2);
  config.task.validation = written("own", distinct_text(1000));
  config.task.test =
      written("test", distinct_text(500));  // training has no use
  const auto with_own = identity(config);
  ASSERT_EQ(with_own.size(), 2u);
  EXPECT_EQ(with_own[0], whole[0]);
  EXPECT_EQ(with_own[1].setting, "task.validation");
  EXPECT_EQ(with_own[1].bytes, 1000);
}

// Without its repeats a sequence is the text that it would have been.
TEST_F(TextTaskTest, RepeatsAreOfWhatTheSequenceHasSaidAndTheTextGoesOn) {
  auto config = config_for(distinct_text(100'000), 4096, 2);
  const auto plain = make_task(config)->training_batch(5);
  config.task.repeats = 0.3;
  const auto task = make_task(config);
  const auto repeated = task->training_batch(5);
  EXPECT_TRUE(repeated.loss_mask.all().item<bool>());
  EXPECT_TRUE(at::equal(task->training_batch(5).tokens, repeated.tokens));
  for (int64_t row = 0; row < 2; ++row) {
    const std::string text = row_of(plain, row);
    const std::string sequence = row_of(repeated, row);
    const auto pieces = pieces_with_repeats(
        4096, 0.3, row_key(config.train.seed, Draw::kTextRepeats, 5, row));
    std::string expected;
    size_t taken = 0;
    for (const auto& [size, source] : pieces) {
      if (source == SequencePiece::kText) {
        expected += text.substr(taken, size_t(size));
        taken += size_t(size);
      } else {
        expected += expected.substr(size_t(source), size_t(size));
      }
    }
    EXPECT_EQ(sequence, expected) << row;
    EXPECT_LT(taken, 4096u);
  }
  EXPECT_NE(row_of(repeated, 0), row_of(repeated, 1));
  for (int64_t i = 0; i < task->evaluation_batches(Split::kTest); ++i) {
    EXPECT_TRUE(at::equal(task->evaluation_batch(Split::kTest, i).tokens,
                          make_task(config_for(distinct_text(100'000), 4096, 2))
                              ->evaluation_batch(Split::kTest, i)
                              .tokens));
  }
}

}  // namespace
}  // namespace reformer
