#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "reformer/base/xxhash64.h"
#include "reformer/io/checkpoint.h"
#include "reformer/io/checkpoint_state.h"
#include "reformer/io/safetensors.h"
#include "tests/io/checkpoint_fixture.h"
#include "tests/support/latest_checkpoint.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

// The text of a state with the checksum that belongs to it.
std::string signed_state(std::string text) {
  const size_t at = text.rfind("\"checksum\"");
  text.replace(at + 13, 16, xxhash64_hex(text.substr(0, at)));
  return text;
}

class CheckpointDamage : public CheckpointTest {};

TEST_F(CheckpointDamage, EveryFlippedBitOfTheStateIsFound) {
  save(1);
  const std::string path = first_ + "/state.json";
  const std::string bytes = bytes_of(path);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int bit : {static_cast<int>(i % 8), 5}) {
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      EXPECT_NE(fault_in(path, flipped), "no error") << bit << " of " << i;
    }
  }
  put_bytes(path, bytes);
  EXPECT_EQ(latest(), 1);
}

TEST_F(CheckpointDamage, ATokenizerOfOtherBytesIsFound) {
  Checkpoint saved = tiny_checkpoint(1, 1);
  saved.tokenizer = "pieces";
  save_checkpoint(run_, saved, false);
  EXPECT_NE(fault_in(first_ + "/tokenizer.model", "pieceS"), "no error");
}

TEST_F(CheckpointDamage, EveryTruncationIsFound) {
  save(1);
  for (const std::string name : kFiles) {
    const std::string path = first_ + "/" + name;
    const std::string bytes = bytes_of(path);
    // The last byte of the state is a newline.
    for (size_t size = 0; size + 1 < bytes.size(); size += 7) {
      EXPECT_NE(fault_in(path, bytes.substr(0, size)), "no error") << size;
    }
    EXPECT_NE(fault_in(path, "").find("is empty"), std::string::npos);
    put_bytes(path, bytes);
  }
  EXPECT_EQ(latest(), 1);
}

TEST_F(CheckpointDamage, AMissingFileIsNamed) {
  for (const std::string name : kFiles) {
    save(1);
    fs::remove(first_ + "/" + name);
    EXPECT_EQ(latest_error(),
              first_ + "/" + name + ": cannot read: No such file or directory");
  }
}

TEST_F(CheckpointDamage, FilesOfAnotherCheckpointAreNamed) {
  save(1);
  save(2);
  const std::string second = folder_ / "step-00000002";
  const std::string model = second + "/model.safetensors";
  const std::string kept = bytes_of(model);
  for (const std::string& other :
       {first_ + "/model.safetensors", second + "/optimizer.safetensors"}) {
    EXPECT_NE(fault_in(model, bytes_of(other)).find("is not the file"),
              std::string::npos);
  }
  put_bytes(model, kept);
  EXPECT_EQ(latest(), 2);
}

TEST_F(CheckpointDamage, ADamagedOneNamesTheWayOn) {
  save(1);
  save(2);
  const std::string second = folder_ / "step-00000002";
  EXPECT_EQ(fault_in(second + "/state.json", "{}"),
            "format is missing; move " + second + " aside (to " + second +
                ".damaged) to go on from step 1");
  fs::remove_all(second);
  EXPECT_EQ(latest(), 1);
}

TEST_F(CheckpointDamage, AFormatOfTheFutureIsNamed) {
  save(1);
  EXPECT_NE(fault_in(first_ + "/state.json", "{\"format\": 3}")
                .find("of format 3, which a newer program wrote"),
            std::string::npos);
}

// A good one is never to be moved: the next start would go on without it.
TEST_F(CheckpointDamage, WhatMayBeGoodIsNotToBeMovedAside) {
  save(1);
  save(2);
  const std::string second = folder_ / "step-00000002";
  const std::string path = second + "/state.json";
  const std::string bytes = bytes_of(path);
  const auto expect_no_advice = [&](const std::string& said) {
    EXPECT_NE(said, "no error");
    EXPECT_EQ(said.find("step 1"), std::string::npos) << said;
    EXPECT_EQ(said.find("move"), std::string::npos) << said;
  };
  expect_no_advice(fault_in(path, "{\"format\": 3}"));
  CheckpointState state = parse_state(bytes, path);
  std::string newer = render_state(state);
  newer.replace(newer.find("\"seed\""), 6, "\"sead\"");
  expect_no_advice(fault_in(path, signed_state(newer)));
  put_bytes(path, bytes);
  EXPECT_EQ(latest(), 2);

  const std::string model = second + "/model.safetensors";
  const std::string weights = bytes_of(model);
  for (const auto& [now, later] :
       {std::pair<std::string, std::string>{"\"F32\"", "\"F33\""},
        {"\"xxhash64\"", "\"xxhash65\""}}) {
    std::string of_later = weights;
    of_later.replace(of_later.find(now), now.size(), later);
    const std::string said = fault_in(model, of_later);
    expect_no_advice(said);
    EXPECT_NE(said.find("a newer program may have written it"),
              std::string::npos)
        << said;
  }
  put_bytes(model, weights);

  fs::permissions(run_, fs::perms(0755));
  for (const std::string name : kFiles) {
    fs::permissions(second + "/" + name, fs::perms(0));
    const bool root = ::geteuid() == 0;
    if (root && ::seteuid(65534) != 0) GTEST_SKIP() << "root reads anything";
    const auto said = latest_error();
    const bool reachable =
        ::faccessat(AT_FDCWD, run_.c_str(), R_OK | X_OK, AT_EACCESS) == 0;
    if (root) {
      ASSERT_EQ(::seteuid(0), 0);
    }
    if (!reachable) GTEST_SKIP() << "others may not enter " << run_;
    EXPECT_EQ(said, second + "/" + name + ": cannot read: Permission denied");
    fs::permissions(second + "/" + name, fs::perms(0644));
  }
}

TEST_F(CheckpointDamage, AFieldThatIsNoNumberIsNamed) {
  save(1);
  const std::string path = first_ + "/state.json";
  const std::string bytes = bytes_of(path);
  const auto with = [&](const std::string& key, const std::string& value) {
    std::string text = bytes;
    const size_t at = text.find("\"" + key + "\":") + key.size() + 4;
    text.replace(at, text.find(',', at) - at, value);
    return fault_in(path, signed_state(text));
  };
  EXPECT_NE(with("best_loss", "\"abc\"")
                .find("best_loss: a number is required, got \"abc\""),
            std::string::npos);
  EXPECT_NE(with("seconds", "[]").find("seconds: a number is required"),
            std::string::npos);
  EXPECT_NE(with("step", "1.5").find("step: a whole number is required"),
            std::string::npos);
  EXPECT_NE(with("step", "-1").find("cannot be negative"), std::string::npos);
  EXPECT_NE(with("step", "18446744073709551615").find("a whole number"),
            std::string::npos);
  EXPECT_NE(with("best_loss", "1e400").find("is too large"), std::string::npos);
  EXPECT_NE(with("has_best", "7").find("has_best: is not what"),
            std::string::npos);
}

TEST_F(CheckpointDamage, OneOfAnOlderProgramIsEvaluatedAndKnowsNoData) {
  save(3);
  const std::string path = folder_ / "step-00000003/state.json";
  std::string text = bytes_of(path);
  for (const std::string key : {"evaluated_step", "data"}) {
    const size_t begin = text.find("  \"" + key + "\":");
    text.erase(begin, text.find('\n', begin) + 1 - begin);
  }
  put_bytes(path, signed_state(text));
  const auto loaded = load_latest_checkpoint(run_).value();
  EXPECT_EQ(loaded.evaluated_step, 3);
  EXPECT_TRUE(loaded.data.empty());
}

TEST_F(CheckpointDamage, FilesElsewhereAreNotRead) {
  save(1);
  const std::string path = first_ + "/state.json";
  std::string text = bytes_of(path);
  const size_t at = text.find("model.safetensors");
  text.replace(at, 17, "../../step.safetensors");
  EXPECT_NE(error_of([&] {
              put_bytes(path, signed_state(text));
              latest();
            }).find("the name of a file beside"),
            std::string::npos);
}

TEST_F(CheckpointDamage, OneThatIsNotFiniteIsNotLoaded) {
  save(1);
  save(2);
  const std::string second = folder_ / "step-00000002";
  for (const std::string name : {kFiles[1], kFiles[0]}) {
    auto tensors = read_safetensors(second + "/" + name).tensors;
    tensors[1].value[0] = std::nan("");
    CheckpointState state = read_state(second);
    state.checksums[name] = write_safetensors(second + "/" + name, tensors, {});
    put_bytes(second + "/state.json", render_state(state));
    const auto said = latest_error();
    EXPECT_TRUE(said.starts_with(second + "/" + name + ": " + tensors[1].name +
                                 " holds NaN or infinity"))
        << said;
    EXPECT_TRUE(said.ends_with("to go on from step 1")) << said;
    const auto using_it = error_of([&] { load_best_model(second); });
    EXPECT_EQ(using_it.empty(), name == kFiles[1]) << using_it;
  }
  fs::rename(second, second + ".damaged");  // as the sentence says
  EXPECT_EQ(latest(), 1);
}

TEST_F(CheckpointDamage, WhoOnlyUsesTheModelDoesNotOpenTheOptimizersFiles) {
  const Checkpoint saved = tiny_checkpoint(1, 1);
  for (const size_t files : {1, 2}) {
    save_in_parts(run_, saved, /*best=*/false, files);
    for (const std::string& name : names_in(first_)) {
      if (name.starts_with("optimizer")) put_bytes(first_ + "/" + name, "?");
    }
    const auto model = load_best_model(run_);
    EXPECT_TRUE(same_bits(model.parameters, saved.parameters));
    EXPECT_TRUE(model.optimizer.empty());
    EXPECT_EQ(model.step, 1);
    EXPECT_NE(error_of([&] { load_best_checkpoint(run_); }), "");
    EXPECT_NE(latest_error(), "");
  }
}

TEST_F(CheckpointDamage, WhoAsksHowFarARunIsReadsNoTensors) {
  EXPECT_FALSE(load_latest_state(run_));
  save(1);
  save(2);
  const std::string second = folder_ / "step-00000002";
  fs::remove(second + "/model.safetensors");
  fs::remove(second + "/optimizer.safetensors");
  EXPECT_EQ(load_latest_state(run_)->step, 2);
}

TEST_F(CheckpointDamage, EveryFlippedBitOfFilesOfRanksIsFound) {
  save_in_parts(run_, tiny_checkpoint(1, 1), /*best=*/false, 3);
  for (const std::string& name : names_in(first_)) {
    if (!name.ends_with(".safetensors")) continue;
    const std::string path = first_ + "/" + name;
    const std::string bytes = bytes_of(path);
    for (size_t i = 0; i < bytes.size(); i += 3) {
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
      EXPECT_NE(fault_in(path, flipped), "no error") << name << ", byte " << i;
    }
    put_bytes(path, bytes);
  }
  EXPECT_EQ(latest(), 1);
}

TEST_F(CheckpointDamage, AConfigOfAnotherProgramIsNamed) {
  save(1);
  EXPECT_NE(
      fault_in(first_ + "/state.json", "[1, 2]").find("format is missing"),
      std::string::npos);
}

}  // namespace
}  // namespace reformer
