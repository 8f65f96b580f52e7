#include <gtest/gtest.h>

#include "reformer/data/decoded_images.h"

namespace reformer {
namespace {

TEST(ImageSplit, IsTheFirstThatTheNameSays) {
  const std::pair<const char*, ImageSplit> cases[] = {
      {"valid/val_1.JPEG", ImageSplit::kValidation},
      {"tiny/val/images/x.png", ImageSplit::kValidation},
      {"val_data.npz/data.npy", ImageSplit::kValidation},
      {"Validation/1.png", ImageSplit::kValidation},
      {"test/1.png", ImageSplit::kTest},
      {"train/test/1.png", ImageSplit::kTrain},
      {"train_data_batch_10.npz/data.npy", ImageSplit::kTrain},
      {"valentine/1.png", ImageSplit::kTrain},
      {"testimony.png", ImageSplit::kTrain},
      {"n0144/x.png", ImageSplit::kTrain},
      {"my-test/x.png", ImageSplit::kTrain},
      {"", ImageSplit::kTrain},
  };
  for (const auto& [name, split] : cases) {
    EXPECT_EQ(split_named(name), split) << name;
  }
}

}  // namespace
}  // namespace reformer
