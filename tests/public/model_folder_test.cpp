// Folders of models: saved, loaded, read by the program and written by it.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "reformer/error.h"
#include "reformer/io/checkpoint.h"
#include "reformer/model.h"
#include "reformer/train/trainer.h"
#include "tests/io/temporary_folder.h"
#include "tests/public/small_model.h"

namespace {

namespace fs = std::filesystem;
using public_tests::counting;
using public_tests::small_options;
using reformer::Model;
using reformer::TemporaryFolder;

Model trained(int steps) {
  Model model(small_options(), "cpu");
  for (int step = 0; step < steps; ++step) {
    model.train_step(counting(step, 2, 48));
  }
  return model;
}

TEST(ModelFolder, GoesOnAsIfItHadNeverBeenSaved) {
  const TemporaryFolder folder;
  Model model = trained(3);
  model.save(folder / "run");
  Model again = Model::load(folder / "run", "cpu");
  EXPECT_EQ(again.steps(), 3);
  EXPECT_EQ(again.settings(), model.settings());
  for (int step = 3; step < 6; ++step) {
    const auto tokens = counting(step, 2, 48);
    EXPECT_EQ(again.train_step(tokens), model.train_step(tokens));
  }
  const auto prompt = counting(1, 2, 7);
  EXPECT_TRUE(at::equal(again.generate(prompt, 9), model.generate(prompt, 9)));
}

TEST(ModelFolder, LoadsWhatWasSavedLast) {
  const TemporaryFolder folder;
  Model model = trained(1);
  for (int step = 1; step < 5; ++step) {
    model.save(folder / "run");
    model.save(folder / "run");  // the same step once more
    model.train_step(counting(step, 2, 48));
  }
  EXPECT_EQ(Model::load(folder / "run", "cpu").steps(), 4);
  Model again = Model::load(folder / "run", "cpu");
  again.train_step(counting(0, 2, 48));
  again.save(folder / "run");
  EXPECT_EQ(Model::load(folder / "run", "cpu").steps(), 5);
}

TEST(ModelFolder, NothingOfOthersIsTouched) {
  const TemporaryFolder folder;
  std::ofstream(folder / "letter") << "dear";
  const Model model = trained(2);
  EXPECT_THROW(model.save(folder.path()), reformer::Error);
  model.save(folder / "run");
  EXPECT_THROW(trained(1).save(folder / "run"), reformer::Error);  // older
  auto options = small_options();
  options.layers = 4;
  Model other(options, "cpu");  // newer, but of other settings
  for (int step = 0; step < 3; ++step) other.train_step(counting(0, 1, 9));
  EXPECT_THROW(other.save(folder / "run"), reformer::Error);
  EXPECT_EQ(Model::load(folder / "run", "cpu").steps(), 2);
  EXPECT_THROW(Model::load(folder / "none", "cpu"), reformer::Error);
}

TEST(ModelFolder, ForInferenceItGeneratesTheSameAndNeitherTrainsNorSaves) {
  const TemporaryFolder folder;
  const Model model = trained(5);
  model.save(folder / "run");
  Model again =
      Model::load(folder / "run", "cpu", reformer::ModelUse::kInference);
  const auto tokens = counting(0, 2, 9);
  EXPECT_TRUE(
      at::equal(again.generate(tokens, 20), model.generate(tokens, 20)));
  EXPECT_EQ(again.evaluate(tokens), model.evaluate(tokens));
  EXPECT_THROW(again.train_step(tokens), reformer::Error);
  EXPECT_THROW(again.save(folder / "other"), reformer::Error);
  EXPECT_FALSE(fs::exists(folder / "other"));
}

TEST(ModelFolder, ExportedModelsTrainOn) {
  const TemporaryFolder folder;
  const Model model = trained(5);
  model.save(folder / "run");
  reformer::export_model(folder / "exported",
                         reformer::load_best_checkpoint(folder / "run"),
                         at::kFloat, /*most_bytes=*/0);
  Model again = Model::load(folder / "exported", "cpu");
  const auto tokens = counting(0, 2, 48);
  EXPECT_EQ(again.evaluate(tokens), model.evaluate(tokens));
  again.train_step(tokens);
  EXPECT_LT(again.evaluate(tokens), model.evaluate(tokens));
}

TEST(ModelFolder, RunsOfTheProgramAreRead) {
  const TemporaryFolder folder;
  reformer::Config config;
  config.task.name = "duplication";
  config.task.alphabet = 7;
  config.model.layers = 1;
  config.model.d_model = 16;
  config.model.heads = 2;
  config.model.vocabulary = 8;
  config.train.length = 16;
  config.train.steps = 3;
  const std::atomic<bool> stop = false;
  reformer::TrainObserver nobody;
  reformer::train(config, *reformer::make_task(config),
                  {.directory = folder / "run"}, stop, nobody);
  Model model = Model::load(folder / "run", "cpu");
  EXPECT_EQ(model.steps(), 3);
  EXPECT_EQ(model.vocabulary(), 8);
  model.train_step(counting(0, 2, 16).remainder(8));
  model.save(folder / "run");
  EXPECT_EQ(Model::load(folder / "run", "cpu").steps(), 4);
}

}  // namespace
