#include "reformer/io/checkpoint.h"

#include <ATen/ops/zeros.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "reformer/base/xxhash64.h"
#include "reformer/config/config_json.h"
#include "reformer/io/checkpoint_state.h"
#include "reformer/io/safetensors.h"
#include "tests/io/checkpoint_support.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

const char* const kFiles[] = {"model.safetensors", "optimizer.safetensors",
                              "state.json"};

Names names_in(const std::string& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.insert(entry.path().filename());
  }
  return names;
}

// The text of a state with the checksum that belongs to it.
std::string signed_state(std::string text) {
  const size_t at = text.rfind("\"checksum\"");
  text.replace(at + 13, 16, xxhash64_hex(text.substr(0, at)));
  return text;
}

class CheckpointTest : public testing::Test {
 protected:
  void save(int64_t step, bool best = false, int64_t keep = 2) {
    save_checkpoint(run_, tiny_checkpoint(step, keep), best);
  }

  // Steps as a loader sees them; -1: none.
  int64_t latest() {
    const auto checkpoint = load_latest_checkpoint(run_);
    return checkpoint ? checkpoint->step : -1;
  }
  int64_t best() { return load_best_checkpoint(run_).step; }

  std::string latest_error() {
    return error_of([&] { load_latest_checkpoint(run_); });
  }

  // After `bytes` took the place of the file: the error, less the file's name.
  std::string fault_in(const std::string& path, const std::string& bytes) {
    put_bytes(path, bytes);
    const std::string message = latest_error();
    if (!message.starts_with(path + ": ")) return "no error";
    return message.substr(path.size() + 2);
  }

  TemporaryFolder folder_;
  std::string run_ = folder_.path();
  std::string first_ = folder_ / "step-00000001";
};

TEST_F(CheckpointTest, EverythingComesBackBitForBit) {
  Checkpoint saved = tiny_checkpoint(123'456'789'012, 3);
  saved.config.model.axial_shape = {4, 5};
  saved.config.train.learning_rate = 0.1 + 0.2;
  saved.config.task.data = "a \"b\"\n.txt";
  saved.data_position = std::numeric_limits<int64_t>::max();
  saved.threads = 7;
  saved.instruction_set = "avx2";
  saved.has_best = true;
  saved.evaluated_step = 123'456'000'000;
  saved.data = {{"task.data", 77, "00ff"}, {"task.validation", 1, "ee"}};
  for (const double number : {0.1 + 0.2, -0.0, 5e-324, 1.7976931348623157e308,
                              1.0 / 3, HUGE_VAL, -HUGE_VAL}) {
    saved.best_loss = number;
    saved.seconds = number / 3;
    save_checkpoint(run_, saved, false);
    EXPECT_TRUE(fs::exists(folder_ / "step-123456789012"));
    const Checkpoint loaded = load_latest_checkpoint(run_).value();
    EXPECT_EQ(loaded.step, saved.step);
    EXPECT_EQ(loaded.data_position, saved.data_position);
    EXPECT_EQ(std::signbit(loaded.best_loss), std::signbit(saved.best_loss));
    EXPECT_EQ(loaded.best_loss, saved.best_loss);
    EXPECT_EQ(loaded.has_best, saved.has_best);
    EXPECT_EQ(loaded.seconds, saved.seconds);
    EXPECT_EQ(loaded.evaluated_step, saved.evaluated_step);
    EXPECT_EQ(loaded.data, saved.data);
    EXPECT_EQ(loaded.threads, saved.threads);
    EXPECT_EQ(loaded.instruction_set, saved.instruction_set);
    EXPECT_EQ(config_to_json(loaded.config), config_to_json(saved.config));
    EXPECT_TRUE(same_bits(loaded.parameters, saved.parameters));
    EXPECT_TRUE(same_bits(loaded.optimizer, saved.optimizer));
  }
}

TEST_F(CheckpointTest, ALossThatIsNoNumberComesBackAsOne) {
  Checkpoint saved = tiny_checkpoint(1, 1);
  saved.best_loss = std::nan("");
  save_checkpoint(run_, saved, false);
  EXPECT_TRUE(std::isnan(load_latest_checkpoint(run_)->best_loss));
}

TEST_F(CheckpointTest, ARunWithoutCheckpointsGivesNothing) {
  EXPECT_EQ(latest(), -1);
  EXPECT_EQ(error_of([&] { best(); }), run_ + ": holds no checkpoint");
  run_ = folder_ / "missing";
  EXPECT_EQ(latest(), -1);
  EXPECT_EQ(error_of([&] { best(); }), run_ + ": no such folder");
}

TEST_F(CheckpointTest, ACheckpointItselfMayBeGiven) {
  save(1, /*best=*/true);
  save(2);
  EXPECT_EQ(load_best_checkpoint(folder_ / "step-00000002").step, 2);
  EXPECT_EQ(load_best_checkpoint(folder_ / "step-00000002/").step, 2);
  EXPECT_EQ(load_best_checkpoint(folder_ / "best").step, 1);
}

TEST_F(CheckpointTest, TheLastFewAreKept) {
  for (int64_t step = 1; step <= 5; ++step) save(step, false, /*keep=*/3);
  EXPECT_EQ(names_in(run_),
            (Names{"step-00000003", "step-00000004", "step-00000005"}));
  EXPECT_EQ(latest(), 5);
  save(6, false, /*keep=*/1);
  EXPECT_EQ(names_in(run_), (Names{"step-00000006"}));
}

TEST_F(CheckpointTest, TheOneJustSavedIsNeverRemoved) {
  save(9);
  save(5, false, /*keep=*/1);
  save(4, false, /*keep=*/0);
  EXPECT_EQ(load_best_checkpoint(folder_ / "step-00000004").step, 4);
}

TEST_F(CheckpointTest, TheBestIsKeptUntilThereIsABetter) {
  save(1);
  EXPECT_EQ(best(), 1);
  save(2, /*best=*/true);
  for (int64_t step = 3; step <= 6; ++step) save(step);
  EXPECT_EQ(names_in(run_),
            (Names{"best", "step-00000002", "step-00000005", "step-00000006"}));
  EXPECT_EQ(best(), 2);
  EXPECT_EQ(latest(), 6);
  save(7, /*best=*/true);
  EXPECT_EQ(names_in(run_), (Names{"best", "step-00000006", "step-00000007"}));
  EXPECT_EQ(best(), 7);
  EXPECT_EQ(fs::read_symlink(folder_ / "best"), "step-00000007");
}

TEST_F(CheckpointTest, AStepSavedAgainIsReplacedAndStaysTheBest) {
  save(1, /*best=*/true);
  save(2);
  Checkpoint again = tiny_checkpoint(1, 2);
  again.seconds = 42;
  save_checkpoint(run_, again, false);
  const Checkpoint loaded = load_best_checkpoint(run_);
  EXPECT_EQ(loaded.step, 1);
  EXPECT_EQ(loaded.seconds, 42);
  EXPECT_EQ(names_in(run_), (Names{"best", "step-00000001", "step-00000002"}));
}

TEST_F(CheckpointTest, TheLinkIsNotNeeded) {
  save(1, /*best=*/true);
  save(2);
  fs::remove(folder_ / "best");
  EXPECT_EQ(best(), 1);
  fs::create_directory(folder_ / "best");  // as scp leaves it
  save(3);
  EXPECT_EQ(best(), 1);
  EXPECT_EQ(names_in(run_),
            (Names{"best", "step-00000001", "step-00000002", "step-00000003"}));
}

TEST_F(CheckpointTest, LeftoversAreIgnoredAndThenRemoved) {
  save(1);
  fs::create_directory(folder_ / ".tmp-step-00000009-77");
  put_bytes(folder_ / ".tmp-step-00000009-77/state.json", "{");
  put_bytes(folder_ / ".tmp-config.json-77", "{");
  fs::create_directory(folder_ / "step-00000001.old");
  fs::create_directory(folder_ / ".tmp-step-00000001.old-78");
  put_bytes(folder_ / ".tmp-metrics.jsonl-77-0123456789abcdef", "{");
  fs::create_directory_symlink("step-00000001", folder_ / ".tmp-best-77");
  EXPECT_EQ(latest(), 1);
  save(2);
  EXPECT_EQ(names_in(run_), (Names{"step-00000001", "step-00000002"}));
}

TEST_F(CheckpointTest, OtherFilesAndFoldersAreLeftAlone) {
  const Names others = {"step-7",
                        "step-0000000x",
                        "step-00000008.bak",
                        "notes",
                        ".tmp-",
                        ".tmp-thesis",
                        ".tmp-thesis-12",
                        ".tmp-step-00000009",
                        ".tmp-step-00000009-x",
                        ".tmp-step-9-77",
                        ".tmp-step-00000009-77-0123456789abcdefg",
                        ".tmp-step-00000009-0123456789abcdef",
                        ".tmp-config.json-"};
  for (const auto& name : others) fs::create_directory(folder_ / name);
  put_bytes(folder_ / "step-00000009", "a file");
  EXPECT_EQ(latest(), -1);
  for (int64_t step = 1; step <= 4; ++step) save(step, false, /*keep=*/1);
  Names expected = others;
  expected.insert({"step-00000009", "step-00000004"});
  EXPECT_EQ(names_in(run_), expected);
}

TEST_F(CheckpointTest, AReplacedOneOpensUntilItsReplacementIsThere) {
  save(1, /*best=*/true);
  fs::rename(first_, folder_ / "step-00000001.old");
  EXPECT_EQ(latest(), 1);
  EXPECT_EQ(best(), 1);
  save(2);
  EXPECT_EQ(best(), 1);
  save(1);
  EXPECT_EQ(best(), 1);
  EXPECT_EQ(names_in(run_), (Names{"best", "step-00000001", "step-00000002"}));
}

TEST_F(CheckpointTest, OpensWhileTheRunGoesOn) {
  save(1, /*best=*/true);
  std::atomic<bool> done{false};
  const std::jthread training([&] {
    for (int64_t step = 2; step < 60; ++step) {
      save(step, step % 3 == 0, /*keep=*/1);
    }
    done = true;
  });
  int64_t before = 0;
  while (!done) {
    const int64_t step = latest();
    EXPECT_GE(step, before);
    before = step;
    EXPECT_GE(best(), 1);
  }
}

TEST_F(CheckpointTest, EveryFlippedBitOfTheStateIsFound) {
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

TEST_F(CheckpointTest, EveryTruncationIsFound) {
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

TEST_F(CheckpointTest, AMissingFileIsNamed) {
  for (const std::string name : kFiles) {
    save(1);
    fs::remove(first_ + "/" + name);
    EXPECT_EQ(latest_error(),
              first_ + "/" + name + ": cannot read: No such file or directory");
  }
}

TEST_F(CheckpointTest, FilesOfAnotherCheckpointAreNamed) {
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

TEST_F(CheckpointTest, ADamagedOneNamesTheWayOn) {
  save(1);
  save(2);
  const std::string second = folder_ / "step-00000002";
  EXPECT_EQ(fault_in(second + "/state.json", "{}"),
            "format is missing; move " + second + " aside (to " + second +
                ".damaged) to go on from step 1");
  fs::remove_all(second);
  EXPECT_EQ(latest(), 1);
}

TEST_F(CheckpointTest, AFormatOfTheFutureIsNamed) {
  save(1);
  EXPECT_NE(fault_in(first_ + "/state.json", "{\"format\": 2}")
                .find("of format 2, which a newer program wrote"),
            std::string::npos);
}

// A good one is never to be moved: the next start would go on without it.
TEST_F(CheckpointTest, WhatMayBeGoodIsNotToBeMovedAside) {
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
  expect_no_advice(fault_in(path, "{\"format\": 2}"));
  CheckpointState state = parse_state(bytes, path);
  std::string newer = render_state(state);
  newer.replace(newer.find("\"seed\""), 6, "\"sead\"");
  expect_no_advice(fault_in(path, signed_state(newer)));
  put_bytes(path, bytes);
  EXPECT_EQ(latest(), 2);

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

TEST_F(CheckpointTest, AFieldThatIsNoNumberIsNamed) {
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

TEST_F(CheckpointTest, OneOfAnOlderProgramIsEvaluatedAndKnowsNoData) {
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

TEST_F(CheckpointTest, FilesElsewhereAreNotRead) {
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

TEST_F(CheckpointTest, OneThatIsNotFiniteIsNotWritten) {
  save(1);
  for (const bool in_optimizer : {false, true}) {
    for (const double wrong : {HUGE_VAL, std::nan("")}) {
      Checkpoint bad = tiny_checkpoint(2, 1);
      auto& tensor = (in_optimizer ? bad.optimizer : bad.parameters)[1];
      tensor.value[3] = wrong;
      try {
        save_checkpoint(run_, bad, /*best=*/true);
        FAIL() << "it was saved";
      } catch (const NotFinite& error) {
        EXPECT_EQ(error.what(), "checkpoint: " + tensor.name +
                                    " is not finite after step 2, and is not "
                                    "saved");
      }
    }
  }
  EXPECT_EQ(names_in(run_), (Names{"step-00000001"}));
  EXPECT_EQ(latest(), 1);
}

TEST_F(CheckpointTest, OneThatIsNotFiniteIsNotLoaded) {
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
    // Whoever only uses the model does not need the optimizer's state.
    const auto using_it = error_of([&] { load_best_checkpoint(second); });
    EXPECT_EQ(using_it.empty(), name == kFiles[1]) << using_it;
  }
  fs::rename(second, second + ".damaged");  // as the sentence says
  EXPECT_EQ(latest(), 1);
}

TEST_F(CheckpointTest, AnEvaluationIsAddedToWhatWasSaved) {
  save(1, /*best=*/true, /*keep=*/1);
  save(2, /*best=*/false, /*keep=*/1);
  const auto before = load_latest_checkpoint(run_).value();
  EXPECT_EQ(before.evaluated_step, -1);
  record_evaluation(run_, {2, 0.75, true, /*best=*/false});
  EXPECT_EQ(best(), 1);
  record_evaluation(run_, {2, 0.5, true, /*best=*/true});
  EXPECT_EQ(best(), 2);
  EXPECT_EQ(names_in(run_), (Names{"best", "step-00000002"}));
  EXPECT_EQ(fs::read_symlink(folder_ / "best"), "step-00000002");
  const auto after = load_latest_checkpoint(run_).value();
  EXPECT_EQ(after.evaluated_step, 2);
  EXPECT_EQ(after.best_loss, 0.5);
  EXPECT_TRUE(after.has_best);
  EXPECT_EQ(after.data_position, before.data_position);
  EXPECT_TRUE(same_bits(after.parameters, before.parameters));
  EXPECT_TRUE(same_bits(after.optimizer, before.optimizer));
}

TEST_F(CheckpointTest, AConfigOfAnotherProgramIsNamed) {
  save(1);
  EXPECT_NE(
      fault_in(first_ + "/state.json", "[1, 2]").find("format is missing"),
      std::string::npos);
}

TEST_F(CheckpointTest, AFileThatCannotGrowLeavesWhatWasThere) {
  save(1, /*best=*/true);
  {
    const FileSizeLimit limit(4096);
    Checkpoint large = tiny_checkpoint(2, 1);
    large.optimizer.push_back({"large", at::zeros({5000})});
    const auto message = error_of([&] { save_checkpoint(run_, large, true); });
    EXPECT_NE(message.find("optimizer.safetensors: cannot write: "
                           "File too large"),
              std::string::npos)
        << message;
  }
  EXPECT_EQ(names_in(run_), (Names{"best", "step-00000001"}));
  EXPECT_EQ(best(), 1);
}

// A disk of 256 KiB.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    mounted_ = ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=256k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_;
};

TEST_F(CheckpointTest, AFullDiskLeavesWhatWasThere) {
  constexpr int64_t kDisk = 256 << 10;
  const SmallDisk disk(run_);
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a small disk";
  save(1, /*best=*/true);
  int failed = 0;
  int64_t step = 1;
  for (int64_t ballast = kDisk - (60 << 10); ballast < kDisk; ballast += 4096) {
    put_bytes(folder_ / "ballast", std::string(ballast, '.'));
    const auto message = error_of([&] { save(step + 1, true, 1); });
    if (message.empty()) ++step;
    if (!message.empty()) {
      ++failed;
      EXPECT_NE(message.find("No space left on device"), std::string::npos)
          << message;
    }
    EXPECT_EQ(names_in(run_).size(), 3u);  // ballast, best and one step
    EXPECT_EQ(latest(), step);
    EXPECT_EQ(best(), step);
  }
  EXPECT_GT(step, 1);
  EXPECT_GT(failed, 2);
}

TEST_F(CheckpointTest, APlaceWithoutPermissionIsNamed) {
  fs::permissions(run_, fs::perms(0555));
  const bool root = ::geteuid() == 0;
  if (root && ::seteuid(65534) != 0) GTEST_SKIP() << "root writes anywhere";
  const auto saving = error_of([&] { save(1); });
  const auto creating =
      error_of([&] { create_run_directory(folder_ / "inner", {}); });
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  for (const auto& message : {saving, creating}) {
    EXPECT_TRUE(message.starts_with(run_)) << message;
    EXPECT_TRUE(message.ends_with("Permission denied")) << message;
  }
}

TEST_F(CheckpointTest, AMissingRunIsNotMade) {
  run_ = folder_ / "missing";
  EXPECT_EQ(error_of([&] { save(1); }), run_ + ": No such file or directory");
}

TEST_F(CheckpointTest, ANewRunGetsItsFolderAndConfig) {
  const std::string run = folder_ / "a/b/c";
  fs::create_directories(run);  // an empty one will do, and so will
  put_bytes(run + "/.tmp-config.json-1", "{");  // what a kill left behind
  Config config;
  config.train.steps = 77;
  create_run_directory(run, config);
  EXPECT_EQ(load_run_config(run).train.steps, 77);
  EXPECT_FALSE(fs::exists(run + "/.tmp-config.json-1"));
}

TEST_F(CheckpointTest, ANewRunDoesNotTouchAnOldOne) {
  const std::string message = run_ + ": already holds a run; ";
  save(1);
  EXPECT_TRUE(
      error_of([&] { create_run_directory(run_, {}); }).starts_with(message));
  fs::remove_all(first_);
  put_bytes(folder_ / "config.json", "{}");
  EXPECT_TRUE(
      error_of([&] { create_run_directory(run_, {}); }).starts_with(message));
}

TEST_F(CheckpointTest, ANewRunWantsAFolderOfItsOwn) {
  put_bytes(folder_ / ".tmp-config.json-1", "{");
  fs::create_directory(folder_ / ".tmp-thesis");
  const auto with_theirs = error_of([&] { create_run_directory(run_, {}); });
  EXPECT_EQ(with_theirs,
            run_ +
                ": exists and is not empty, it holds .tmp-thesis; choose "
                "another folder");
  EXPECT_EQ(names_in(run_), (Names{".tmp-config.json-1", ".tmp-thesis"}));
  put_bytes(folder_ / "thesis.tex", "...");
  EXPECT_TRUE(error_of([&] {
                create_run_directory(run_, {});
              }).starts_with(run_ + ": exists and is not empty"));
  const std::string file = folder_ / "thesis.tex";
  EXPECT_TRUE(error_of([&] {
                create_run_directory(file, {});
              }).starts_with(file + ": "));
}

TEST_F(CheckpointTest, TheConfigOfARunIsItsNewestCheckpoints) {
  EXPECT_EQ(error_of([&] { load_run_config(run_); }), run_ + ": holds no run");
  put_bytes(folder_ / "config.json", R"({"train": {"steps": 5}})");
  EXPECT_EQ(load_run_config(run_).train.steps, 5);
  save(1);
  EXPECT_EQ(load_run_config(run_).train.steps,
            load_latest_checkpoint(run_)->config.train.steps);
}

}  // namespace
}  // namespace reformer
