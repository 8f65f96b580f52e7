#include "reformer/io/checkpoint_parts.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "reformer/io/safetensors.h"
#include "tests/io/checkpoint_fixture.h"
#include "tests/support/latest_checkpoint.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

class CheckpointParts : public CheckpointTest {
 protected:
  Checkpoint checkpoint_of_five() const {
    Checkpoint checkpoint = tiny_checkpoint(1, 2);
    checkpoint.parameters.clear();
    for (const int64_t rows : {7, 1, 40, 3, 5}) {
      checkpoint.parameters.push_back(
          {"p" + std::to_string(rows),
           at::arange(2 * rows, at::kFloat).view({rows, 2})});
    }
    checkpoint.optimizer[1].value = at::arange(5, at::kDouble);
    return checkpoint;
  }
};

TEST_F(CheckpointParts, ComeBackAsOneBitForBit) {
  const Checkpoint saved = checkpoint_of_five();
  for (const size_t count : {1, 2, 3, 7}) {
    save_in_parts(run_, saved, false, count);
    const auto loaded = load_latest_checkpoint(run_).value();
    EXPECT_TRUE(same_bits(loaded.parameters, saved.parameters)) << count;
    EXPECT_TRUE(same_bits(loaded.optimizer, saved.optimizer)) << count;
    EXPECT_EQ(loaded.data_position, saved.data_position);
  }
}

TEST_F(CheckpointParts, AreFilesOfTheirOwnThatOneRankAloneHasNot) {
  save_in_parts(run_, checkpoint_of_five(), /*best=*/true, 2);
  EXPECT_EQ(
      names_in(first_),
      (Names{"best", "model-00001-of-00002.safetensors",
             "model-00002-of-00002.safetensors", "model.safetensors.index.json",
             "optimizer-00001-of-00002.safetensors",
             "optimizer-00002-of-00002.safetensors", "state.json"}));
  EXPECT_EQ(best(), 1);
  // Older programs would take the state for parameters.
  EXPECT_NE(bytes_of(first_ + "/state.json").find("\"format\": 2"),
            std::string::npos);
  save(2);
  const std::string second = folder_ / "step-00000002";
  EXPECT_NE(bytes_of(second + "/state.json").find("\"format\": 1"),
            std::string::npos);
}

TEST_F(CheckpointParts, TheIndexSaysWhichFileHasWhat) {
  const Checkpoint saved = checkpoint_of_five();
  save_in_parts(run_, saved, false, 3);
  const auto index =
      nlohmann::json::parse(bytes_of(first_ + "/model.safetensors.index.json"));
  Names named;
  for (const auto& [name, file] : index["weight_map"].items()) {
    const auto tensors =
        read_safetensors(first_ + "/" + file.get<std::string>()).tensors;
    named.insert(name);
    EXPECT_TRUE(std::any_of(
        tensors.begin(), tensors.end(),
        [&name = name](const auto& tensor) { return tensor.name == name; }))
        << name;
  }
  EXPECT_EQ(named.size(), saved.parameters.size());
}

TEST_F(CheckpointParts, AMissingOrForeignOneIsNamed) {
  save_in_parts(run_, checkpoint_of_five(), false, 2);
  const std::string part = first_ + "/optimizer-00002-of-00002.safetensors";
  const std::string bytes = bytes_of(part);
  EXPECT_NE(
      fault_in(part, bytes_of(first_ + "/optimizer-00001-of-00002.safetensors"))
          .find("is not the file"),
      std::string::npos);
  EXPECT_NE(fault_in(part, bytes.substr(0, bytes.size() - 1)), "no error");
  fs::remove(part);
  EXPECT_EQ(latest_error(), part + ": cannot read: No such file or directory");
  put_bytes(part, bytes);
  EXPECT_EQ(latest(), 1);
}

TEST_F(CheckpointParts, WhatIsNotPublishedLeavesNoTrace) {
  save(1, /*best=*/true);
  {
    const Checkpoint next = tiny_checkpoint(2, 1);
    const CheckpointOfParts whole(run_, 2);
    write_part(whole.folder(), next, {0, 2});
    EXPECT_EQ(names_in(run_).size(), 3);
  }
  EXPECT_EQ(names_in(run_), (Names{"best", "step-00000001"}));
  EXPECT_EQ(latest(), 1);
}

TEST_F(CheckpointParts, WhatIsNotFiniteIsNotWritten) {
  save(1);
  Checkpoint wrong = tiny_checkpoint(2, 1);
  wrong.optimizer[1].value[4] = std::nan("");
  const CheckpointOfParts whole(run_, 2);
  // Each looks at what it writes.
  Checkpoint own = wrong;
  own.optimizer = part_of_state(wrong.optimizer, {0, 2});
  EXPECT_NO_THROW(write_part(whole.folder(), own, {0, 2}));
  own.optimizer = part_of_state(wrong.optimizer, {1, 2});
  EXPECT_THROW(write_part(whole.folder(), own, {1, 2}), NotFinite);
  EXPECT_EQ(names_in(whole.folder()).size(), 2);
}

}  // namespace
}  // namespace reformer
