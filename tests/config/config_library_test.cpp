#include "reformer/config/config_library.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/config/config_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

std::string error_of_loading(const std::string& name_or_path) {
  return error_of([&] { load_config(name_or_path); });
}

TEST(ConfigLibrary, EveryEmbeddedConfigIsPossible) {
  const auto names = config_names();
  for (const char* expected :
       {"duplication", "duplication-small", "text", "enwik8-64k-24gb",
        "imagenet64-24gb", "images-small", "recall", "recall-64k"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), expected), names.end());
  }
  for (const auto& name : names) {
    EXPECT_NO_THROW(check(load_config(name))) << name;
  }
}

TEST(ConfigLibrary, DuplicationIsThePapersModel) {
  const auto config = load_config("duplication");
  EXPECT_EQ(config.model.layers, 1);
  EXPECT_EQ(config.train.length, 1024);
  EXPECT_EQ(config.lsh.n_buckets,
            2 * config.train.length / config.lsh.chunk_length);
  EXPECT_EQ(config.lsh.local_window, 0);
  EXPECT_EQ(config.lsh.window, Window::kChunk);
}

TEST(ConfigLibrary, ThePapersLongSequencesHaveItsModel) {
  for (const char* name : {"enwik8-64k", "enwik8-64k-3-layers", "imagenet64"}) {
    const auto config = load_config(name);
    EXPECT_EQ(config.model.d_model, 1024) << name;
    EXPECT_EQ(config.model.d_ff, 4096) << name;
    EXPECT_EQ(config.model.positions, PositionKind::kAxial) << name;
    EXPECT_EQ(config.lsh.chunk_length, 128) << name;
    EXPECT_EQ(config.lsh.n_buckets, 2 * config.train.length / 128) << name;
    EXPECT_EQ(config.lsh.local_window, 0) << name;
    EXPECT_EQ(config.lsh.window, Window::kChunk) << name;
  }
  EXPECT_EQ(load_config("enwik8-64k").train.length, 65536);
  EXPECT_EQ(load_config("enwik8-64k").model.layers, 12);
  EXPECT_EQ(load_config("enwik8-64k-3-layers").model.layers, 3);
  EXPECT_EQ(load_config("imagenet64").train.length, 64 * 64 * 3);
}

// With the paper's recipe nobody has seen them learn.
TEST(ConfigLibrary, ThePapersLongSequencesHaveARecipeThatWasSeenToTrainThem) {
  for (const char* name : {"enwik8-64k", "enwik8-64k-3-layers", "imagenet64",
                           "enwik8-64k-24gb", "imagenet64-24gb"}) {
    const auto train = load_config(name).train;
    EXPECT_EQ(train.optimizer, OptimizerKind::kMuon) << name;
    EXPECT_EQ(train.schedule, ScheduleKind::kCosine) << name;
    EXPECT_GE(train.steps, 3 * train.warmup) << name;
  }
}

// They are evaluated on sequences far longer than those that they learn from.
TEST(ConfigLibrary, RecallIsPossibleUpToAMillionTokens) {
  for (const char* name : {"recall", "recall-64k"}) {
    auto config = load_config(name);
    EXPECT_EQ(config.model.positions, PositionKind::kRotary)
        << name;  // of any length
    config.train.length = 1 << 20;
    EXPECT_NO_THROW(check(config)) << name;
  }
  EXPECT_EQ(load_config("recall").train.length, 4096);
  EXPECT_EQ(load_config("recall-64k").train.length, 65536);
}

// A position has a coordinate for each axis: none is left over.
TEST(ConfigLibrary, AxialShapesAreThoseOfTheSequences) {
  for (const auto& name : config_names()) {
    const auto config = load_config(name);
    if (config.model.positions != PositionKind::kAxial) continue;
    int64_t positions = 1;
    for (const int64_t axis : config.model.axial_shape) positions *= axis;
    EXPECT_EQ(positions, config.train.length) << name;
  }
}

// What is smaller in the versions for 24 GB is the batch, not the step.
TEST(ConfigLibrary, SmallerGpusTakeTheSameSteps) {
  for (const std::string name : {"enwik8-64k", "imagenet64"}) {
    const auto large = load_config(name);
    const auto small = load_config(name + "-24gb");
    EXPECT_EQ(small.train.batch * small.train.accumulate, large.train.batch);
    EXPECT_EQ(small.model.layers, large.model.layers);
    EXPECT_EQ(small.model.d_model, large.model.d_model);
    EXPECT_EQ(small.train.length, large.train.length);
  }
}

TEST(ConfigLibrary, LoadsAFileByItsPath) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("config_library_test." + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = folder / "mine";
  std::ofstream(path) << "// a comment\n{\"model.layers\": 7}\n";
  EXPECT_EQ(load_config(path).model.layers, 7);

  std::ofstream(path) << "{\"model.layer\": 7}\n";
  expect_contains(error_of_loading(path), path + ": unknown key 'model.layer'");
  expect_contains(error_of_loading(folder), "Is a directory");
  std::filesystem::remove_all(folder);
  expect_contains(error_of_loading(path), path + ": No such file or directory");
}

TEST(ConfigLibrary, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  const auto error = error_of_loading("duplicatoin");
  expect_contains(error, "unknown config 'duplicatoin'");
  expect_contains(error, "the nearest is duplication;");
  expect_contains(error, "there are duplication, duplication-small, ");
  expect_contains(error_of_loading("mine.json"), "No such file or directory");
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

TEST(LoadConfig, MayBeginWithAnother) {
  const TemporaryFolder folder;
  write(folder / "child.json",
        R"({"base": "parent.json", "train": {"steps": 7}})");
  write(folder / "parent.json",
        R"({"base": "text", "train": {"steps": 5, "warmup": 3}})");
  const auto child = load_config(folder / "child.json");
  const auto text = load_config("text");
  EXPECT_EQ(child.train.steps, 7);
  EXPECT_EQ(child.train.warmup, 3);
  EXPECT_EQ(child.model.layers, text.model.layers);
  EXPECT_EQ(child.train.learning_rate, text.train.learning_rate);
}

TEST(LoadConfig, BasesThatAreNoneAreErrors) {
  const TemporaryFolder folder;
  const std::string path = folder / "loop.json";
  const auto error_with = [&](const std::string& base) -> std::string {
    write(path, R"({"base": )" + base + "}");
    try {
      load_config(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(error_with("\"loop.json\"").find("at most 8 configs"),
            std::string::npos);
  EXPECT_NE(error_with("\"missing.json\"").find("missing.json"),
            std::string::npos);
  EXPECT_NE(error_with("3").find("base: a config's name is required, got 3"),
            std::string::npos);
}

}  // namespace
}  // namespace reformer
