#include "reformer/io/average.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "reformer/base/errors.h"
#include "tests/io/checkpoint_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

void save_run(const std::string& run, const std::vector<int64_t>& steps) {
  const auto lock = create_run_directory(run, Config());
  for (const int64_t step : steps) {
    save_checkpoint(run, tiny_checkpoint(step, /*keep=*/100), /*best=*/false);
  }
}

TEST(Average, IsTheMeanOfTheLast) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  save_run(run, {10, 20, 40, 70});
  const auto last = last_checkpoints(run, 3);
  ASSERT_EQ(last.size(), 3U);
  EXPECT_TRUE(last[0].ends_with("step-00000070")) << last[0];
  EXPECT_TRUE(last[2].ends_with("step-00000020")) << last[2];
  for (const auto& folders :
       {last, std::vector<std::string>{last[2], last[0], last[1]}}) {
    const auto mean = average_checkpoints(folders);
    EXPECT_EQ(mean.step, 70);
    EXPECT_TRUE(mean.optimizer.empty());
    ASSERT_EQ(mean.parameters.size(), 2U);
    const double expected = (20 + 40 + 70) / 3.0;
    EXPECT_TRUE(at::equal(mean.parameters[0].value,
                          at::full({2, 3}, expected, at::kFloat)));
    EXPECT_TRUE(at::equal(mean.parameters[1].value,
                          at::full({5}, -expected, at::kFloat)));
  }
}

TEST(Average, OfOneIsThatOne) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  save_run(run, {3, 7});
  const auto mean = average_checkpoints(last_checkpoints(run, 1));
  const auto one = load_best_checkpoint(run + "/step-00000007");
  EXPECT_TRUE(at::equal(mean.parameters[1].value, one.parameters[1].value));
}

TEST(Average, SumsDoNotLoseSmallParts) {
  const TemporaryFolder folder;
  std::vector<std::string> folders;
  for (int64_t i = 0; i < 3; ++i) {  // in float32 1 is lost beside 2^25
    auto checkpoint = tiny_checkpoint(i, 1);
    checkpoint.parameters = {
        {"p", at::full({2}, i == 1 ? 3.0 : (i - 1) * 33554432.0, at::kFloat)}};
    folders.push_back(folder / ("m" + std::to_string(i)));
    export_model(folders.back(), checkpoint, at::kFloat, 0);
  }
  EXPECT_TRUE(at::equal(average_checkpoints(folders).parameters[0].value,
                        at::full({2}, 1, at::kFloat)));
}

TEST(Average, TooFewCheckpointsAreAnError) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  save_run(run, {0, 3, 7});  // what it began with is no one of them
  try {
    last_checkpoints(run, 5);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("holds 2 checkpoints, not 5"), std::string::npos);
    EXPECT_NE(text.find("train.keep"), std::string::npos);
  }
  EXPECT_THROW(last_checkpoints(folder / "none", 1), Error);
  EXPECT_THROW(average_checkpoints({}), Error);
}

TEST(Average, OfDifferentModelsIsAnError) {
  const TemporaryFolder folder;
  auto checkpoint = tiny_checkpoint(1, 1);
  export_model(folder / "a", checkpoint, at::kFloat, 0);
  checkpoint.parameters[1].value = at::full({6}, 1, at::kFloat);
  export_model(folder / "b", checkpoint, at::kFloat, 0);
  checkpoint.parameters.pop_back();
  export_model(folder / "c", checkpoint, at::kFloat, 0);
  for (const char* other : {"b", "c"}) {
    try {
      average_checkpoints({folder / "a", folder / other});
      FAIL();
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(folder / other))
          << error.what();
    }
  }
}

}  // namespace
}  // namespace reformer
