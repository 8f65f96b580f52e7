// A model exported in several files is the model.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/io/checkpoint.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMebibyte = 1 << 20;

// Twelve tensors, of 200 KiB as float32 each.
Checkpoint some_checkpoint() {
  Checkpoint checkpoint;
  checkpoint.step = 17;
  for (int64_t i = 0; i < 12; ++i) {
    checkpoint.parameters.push_back(
        {std::string("p").append(std::to_string(11 - i)),
         at::arange(51200 * i, 51200 * (i + 1), at::kFloat).view({512, 100})});
  }
  checkpoint.optimizer = {{"t", at::arange(3)}};
  return checkpoint;
}

TEST(Export, SeveralFilesHoldTheParametersInTheirOrder) {
  const TemporaryFolder folder;
  const std::string path = folder / "model";
  const auto saved = some_checkpoint();
  export_model(path, saved, at::kFloat, kMebibyte);
  int files = 0;
  for (const auto& entry : fs::directory_iterator(path)) {
    EXPECT_LE(entry.file_size(), uint64_t{kMebibyte}) << entry.path();
    ++files;
  }
  // 4 tensors each; state.json, config.json, and the index.
  EXPECT_EQ(files, 6);
  const std::string index = read_text(path + "/model.safetensors.index.json");
  for (const char* entry : {"\"p11\": \"model-00001-of-00003.safetensors\"",
                            "\"p0\": \"model-00003-of-00003.safetensors\"",
                            "\"total_size\": 2457600"}) {
    EXPECT_NE(index.find(entry), std::string::npos) << index;
  }
  const auto loaded = load_best_checkpoint(path);
  EXPECT_EQ(loaded.step, 17);
  EXPECT_TRUE(loaded.optimizer.empty());
  ASSERT_EQ(loaded.parameters.size(), saved.parameters.size());
  for (size_t i = 0; i < saved.parameters.size(); ++i) {
    EXPECT_EQ(loaded.parameters[i].name, saved.parameters[i].name);
    EXPECT_TRUE(
        at::equal(loaded.parameters[i].value, saved.parameters[i].value));
  }
}

TEST(Export, NoPathOfTheDataGoesWithIt) {
  const TemporaryFolder folder;
  auto saved = some_checkpoint();
  for (auto* path : {&saved.config.task.data, &saved.config.task.validation,
                     &saved.config.task.test, &saved.config.task.cache}) {
    *path = "/home/somebody/text";
  }
  export_model(folder / "model", saved, at::kFloat, 0);
  for (const auto& entry : fs::directory_iterator(folder / "model")) {
    EXPECT_EQ(read_text(entry.path()).find("somebody"), std::string::npos)
        << entry.path();
  }
  EXPECT_FALSE(fs::exists(folder / "model/model.safetensors.index.json"));
}

TEST(Export, ALostFileIsNamed) {
  const TemporaryFolder folder;
  const std::string path = folder / "model";
  export_model(path, some_checkpoint(), at::kFloat, kMebibyte);
  fs::remove(path + "/model-00002-of-00003.safetensors");
  EXPECT_THROW(load_best_checkpoint(path), Error);
}

TEST(Export, ATensorLargerThanAFileIsNamedAndNothingWritten) {
  const TemporaryFolder folder;
  const std::string path = folder / "model";
  auto large = some_checkpoint();
  large.parameters[5].value = at::arange(1 << 20, at::kFloat);
  try {
    export_model(path, large, at::kFloat, kMebibyte);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("p6 alone"), std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace reformer
