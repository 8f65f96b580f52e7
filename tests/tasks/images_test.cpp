// Images come from .npy arrays here: they need no other library.
#include "reformer/tasks/images.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/data/npy_array.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

constexpr int64_t kSide = 3;
constexpr int64_t kPixels = kSide * kSide;

// Images that can be told apart by their first sub-pixel, the red of the
// first pixel: `first`, `first` + 1 and so on.
std::string images(int first, int count) {
  std::string data;
  for (int i = 0; i < count; ++i) {
    for (int64_t k = 0; k < 3 * kPixels; ++k) {
      data += static_cast<char>(first + i + k);
    }
  }
  return npy_array(count, 3 * kPixels, data);
}

class ImagesTaskTest : public testing::Test {
 protected:
  ImagesTaskTest() {
    std::filesystem::create_directory(folder_ / "data");
    config_.task.name = "images";
    config_.task.data = folder_ / "data";
    config_.task.cache = folder_ / "caches";
    config_.task.image_size = kSide;
    config_.train.length = 3 * kPixels;
    config_.train.batch = 4;
  }

  void put(const std::string& name, int first, int count) {
    put_bytes(folder_ / ("data/" + name), images(first, count));
  }

  const TemporaryFolder folder_;
  Config config_;
};

// The first sub-pixel of each row.
std::vector<int64_t> firsts(const Batch& batch) {
  std::vector<int64_t> all;
  for (int64_t row = 0; row < batch.tokens.size(0); ++row) {
    all.push_back(batch.tokens[row][0].item<int64_t>());
  }
  return all;
}

std::vector<int64_t> evaluated(const Task& task, Split split) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < task.evaluation_batches(split); ++i) {
    for (const int64_t first : firsts(task.evaluation_batch(split, i))) {
      all.push_back(first);
    }
  }
  return all;
}

std::vector<int64_t> trained(const Task& task, int64_t begin, int64_t batches) {
  std::vector<int64_t> all;
  for (int64_t i = begin; i < begin + batches; ++i) {
    for (const int64_t first : firsts(task.training_batch(i))) {
      all.push_back(first);
    }
  }
  return all;
}

TEST_F(ImagesTaskTest, ARowIsAImageByRowColumnAndChannel) {
  put("train.npy", 10, 1);
  put("val.npy", 20, 1);
  put("test.npy", 30, 1);
  config_.train.batch = 1;
  const auto task = make_task(config_);
  const auto batch = task->training_batch(0);
  ASSERT_EQ(batch.tokens.sizes(), at::IntArrayRef({1, 27}));
  ASSERT_EQ(batch.tokens.scalar_type(), at::kLong);
  ASSERT_EQ(batch.loss_mask.scalar_type(), at::kBool);
  EXPECT_TRUE(batch.loss_mask.all().item<bool>());
  for (int64_t pixel = 0; pixel < kPixels; ++pixel) {
    for (int64_t channel = 0; channel < 3; ++channel) {
      EXPECT_EQ(batch.tokens[0][3 * pixel + channel].item<int64_t>(),
                10 + channel * kPixels + pixel);
    }
  }
}

TEST_F(ImagesTaskTest, NamedSplitsAreTakenInOrderEachImageOnce) {
  put("train_1.npy", 0, 5);
  put("train_2.npy", 5, 6);
  put("valid.npy", 100, 6);
  put("test.npy", 200, 5);
  const auto task = make_task(config_);
  EXPECT_EQ(evaluated(*task, Split::kValidation),
            (std::vector<int64_t>{100, 101, 102, 103, 104, 105}));
  EXPECT_EQ(evaluated(*task, Split::kTest),
            (std::vector<int64_t>{200, 201, 202, 203, 204}));
  EXPECT_EQ(task->evaluation_batches(Split::kTest), 2);
  EXPECT_EQ(task->evaluation_batch(Split::kTest, 1).tokens.size(0), 1);
}

TEST_F(ImagesTaskTest, TrainingTakesAllImagesBeforeAnyAgain) {
  put("train.npy", 0, 7);
  put("val.npy", 100, 1);
  put("test.npy", 200, 1);
  const auto task = make_task(config_);
  const auto drawn = trained(*task, 0, 7);  // 28 = 4 times 7
  std::set<std::vector<int64_t>> orders;
  for (int64_t time = 0; time < 4; ++time) {
    std::vector<int64_t> order(drawn.begin() + 7 * time,
                               drawn.begin() + 7 * time + 7);
    orders.insert(order);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6})) << time;
  }
  EXPECT_EQ(orders.size(), 4u);
}

TEST_F(ImagesTaskTest, ATrainingBatchIsAFunctionOfSeedAndIndex) {
  put("train.npy", 0, 100);
  const auto task = make_task(config_);
  const auto batch = trained(*task, 7, 3);
  EXPECT_EQ(batch, trained(*task, 7, 3));
  EXPECT_EQ(batch, trained(*make_task(config_), 7, 3));
  EXPECT_NE(batch, trained(*task, 10, 3));
  config_.train.seed = 1;
  EXPECT_NE(batch, trained(*make_task(config_), 7, 3));
}

TEST_F(ImagesTaskTest, SplitsWithoutANameAreHeldOut) {
  put("images.npy", 0, 100);
  const auto task = make_task(config_);
  const auto validation = evaluated(*task, Split::kValidation);
  const auto test = evaluated(*task, Split::kTest);
  std::set<int64_t> all(validation.begin(), validation.end());
  all.insert(test.begin(), test.end());
  for (const int64_t first : trained(*task, 0, 25)) all.insert(first);
  EXPECT_EQ(validation.size(), 5u);
  EXPECT_EQ(test.size(), 5u);
  EXPECT_EQ(all.size(), 100u);
  const auto once = trained(*task, 0, 90 / 4);  // none comes twice
  EXPECT_EQ(std::set(once.begin(), once.end()).size(), once.size());
  for (const int64_t first : once) {
    EXPECT_EQ(std::count(validation.begin(), validation.end(), first), 0);
    EXPECT_EQ(std::count(test.begin(), test.end(), first), 0);
  }
  config_.train.seed = 5;
  EXPECT_EQ(evaluated(*make_task(config_), Split::kValidation), validation);
}

TEST_F(ImagesTaskTest, ASplitWithDataOfItsOwnLeavesTheRestToTraining) {
  put("images.npy", 0, 8);
  put_bytes(folder_ / "own.npy", images(50, 2));
  config_.task.validation = config_.task.test = folder_ / "own.npy";
  const auto task = make_task(config_);
  EXPECT_EQ(evaluated(*task, Split::kValidation),
            (std::vector<int64_t>{50, 51}));
  const auto drawn = trained(*task, 0, 2);
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 8u);
}

TEST_F(ImagesTaskTest, OtherSizesAreFiltered) {
  put("images.npy", 0, 100);
  config_.task.image_size = 1;
  config_.train.length = 3;
  const auto task = make_task(config_);
  const auto batch = task->evaluation_batch(Split::kTest, 0).tokens;
  // The mean of 9 consecutive numbers is the middle one; planes are 9 apart.
  EXPECT_EQ((batch[0][1] - batch[0][0]).item<int64_t>(), 9);
}

TEST_F(ImagesTaskTest, TheMetricIsBitsPerDim) {
  put("images.npy", 0, 40);
  const auto task = make_task(config_);
  EXPECT_EQ(task->metric_name(), "bits per dim");
  EXPECT_DOUBLE_EQ(task->metric_of(std::log(256.0)), 8.0);
}

TEST_F(ImagesTaskTest, MistakesAreErrors) {
  const auto error = [&] { return error_of([&] { make_task(config_); }); };
  put_bytes(folder_ / "data/readme", "no image");
  EXPECT_EQ(error(), config_.task.data +
                         ": no image in it; PNG or JPEG files, or .npz files "
                         "of ImageNet64, are required");
  put("val.npy", 0, 3);
  EXPECT_NE(error().find("no image is left for training"), std::string::npos);
  put_bytes(folder_ / "data/train.npy", npy_array(2, 10, ""));
  const std::string array = config_.task.data + ": cannot read train.npy: ";
  EXPECT_EQ(error(), array + "rows of 3 side^2 bytes are required, got 10");
  put_bytes(folder_ / "data/train.npy", images(0, 2).substr(0, 128 + 27 + 26));
  EXPECT_EQ(error(), array + "it ends in row 1 of 2");
  config_.train.length = 28;
  EXPECT_EQ(error(),
            "train.length: 3 task.image_size^2 = 27 is required by images, got "
            "28");
  config_.train.length = 27;
  config_.task.data = "";
  EXPECT_NE(error().find("task.data: a folder"), std::string::npos);
}

}  // namespace
}  // namespace reformer
