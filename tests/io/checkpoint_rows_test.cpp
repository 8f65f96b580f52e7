#include "reformer/io/checkpoint_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>

#include "reformer/io/checkpoint_state.h"
#include "reformer/io/safetensors.h"
#include "tests/io/checkpoint_fixture.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRows = 1000;
constexpr int64_t kWidth = 64;
constexpr int64_t kHeaders = 8192;  // bytes of all headers and of state.json

// What this thread has read by system calls so far; nothing where the system
// does not count.
std::optional<int64_t> bytes_read() {
  std::ifstream counts("/proc/thread-self/io");
  std::string name;
  int64_t bytes = 0;
  if (counts >> name >> bytes && name == "rchar:") return bytes;
  return {};
}

class CheckpointRows : public CheckpointTest {
 protected:
  CheckpointRows() {
    saved_.optimizer = {{"t", at::full({}, 7, at::kLong)}};
    for (const char* name : {"a.m", "a.v", "b.m"}) {
      saved_.optimizer.push_back(
          {name, at::arange(kRows * kWidth, at::kDouble).view({kRows, kWidth}) +
                     double(name[0] + name[2])});
    }
  }

  // As a rank wants it that keeps part_of_state, and what all have.
  static RowRange wanted(const CheckpointPart& part, at::IntArrayRef sizes) {
    if (sizes.empty()) return {0, 1};
    const Share share =
        share_of(sizes[0], int64_t(part.index), int64_t(part.count));
    return {share.begin, share.count()};
  }

  std::vector<NamedTensor> load(const CheckpointPart& part) {
    return load_optimizer_rows(run_, 1, part,
                               [&](const std::string&, at::IntArrayRef sizes) {
                                 return wanted(part, sizes);
                               });
  }

  std::vector<NamedTensor> kept_by(const CheckpointPart& part) const {
    auto own = part_of_state(saved_.optimizer, part);
    if (part.index > 0) own.insert(own.begin(), saved_.optimizer[0]);
    return own;
  }

  Checkpoint saved_ = tiny_checkpoint(1, 2);
};

TEST_F(CheckpointRows, AreTheWantedOnesOfAnyNumberOfFiles) {
  for (const size_t files : {1, 3, 4}) {
    save_in_parts(run_, saved_, false, files);
    for (const size_t readers : {1, 2, 4, 5}) {
      for (size_t i = 0; i < readers; ++i) {
        EXPECT_TRUE(same_bits(load({i, readers}), kept_by({i, readers})))
            << files << " files, reader " << i << " of " << readers;
      }
    }
  }
  const auto model = load_latest_model(run_).value();
  EXPECT_TRUE(same_bits(model.parameters, saved_.parameters));
  EXPECT_TRUE(model.optimizer.empty());
}

TEST_F(CheckpointRows, NothingElseIsRead) {
  if (!bytes_read()) GTEST_SKIP() << "no /proc/thread-self/io here";
  const int64_t whole = 3 * kRows * kWidth * int64_t(sizeof(double));
  const auto reads = [&](size_t i, size_t readers) {
    const int64_t before = *bytes_read();
    load({i, readers});
    return *bytes_read() - before;
  };
  save_in_parts(run_, saved_, false, 4);
  // As many as have written: each its own file.
  for (const size_t i : {0, 1, 2, 3}) {
    EXPECT_NEAR(double(reads(i, 4)), double(whole) / 4, kHeaders) << i;
  }
  // Others: what they keep, and the files that they verify.
  for (const size_t i : {0, 1}) {
    EXPECT_LT(reads(i, 2), whole / 2 + whole / 4 + kHeaders) << i;
  }
  EXPECT_NEAR(double(reads(6, 8)), double(whole) / 8, kHeaders);
  save_in_parts(run_, saved_, false, 1);
  EXPECT_NEAR(double(reads(1, 4)), double(whole) / 4, kHeaders);
}

// Of a thousand ranks each would need a thousand descriptors.
TEST_F(CheckpointRows, FilesAreOpenOneAtATime) {
  save_in_parts(run_, saved_, false, 40);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);
  ::close(next);
  const rlimit few{rlim_t(next) + 8, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto fault = error_of([&] { load({1, 2}); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(fault, "");
}

TEST_F(CheckpointRows, DamageIsFoundByOneOfTheReaders) {
  save_in_parts(run_, saved_, false, 2);
  const auto faults = [&] {
    std::string all;
    for (const size_t i : {0, 1, 2}) {
      all += error_of([&] { load({i, 3}); });
    }
    return all;
  };
  EXPECT_EQ(faults(), "");
  const std::string file = first_ + "/optimizer-00002-of-00002.safetensors";
  std::string bytes = bytes_of(file);
  bytes.back() ^= 1;
  put_bytes(file, bytes);
  EXPECT_NE(faults().find(file + ": damaged: its checksum differs"),
            std::string::npos);
  fs::copy_file(first_ + "/optimizer-00001-of-00002.safetensors", file,
                fs::copy_options::overwrite_existing);
  EXPECT_NE(error_of([&] {
              load({0, 3});
            }).find(file + ": is not the file"),
            std::string::npos);
}

TEST_F(CheckpointRows, WhatIsNotFiniteIsNotLoadedAndTheWayOnIsNamed) {
  save_in_parts(run_, saved_, false, 2);
  Checkpoint next = saved_;
  next.step = 2;
  save_in_parts(run_, next, false, 2);
  const std::string second = folder_ / "step-00000002";
  const std::string name = "optimizer-00002-of-00002.safetensors";
  auto tensors = read_safetensors(second + "/" + name).tensors;
  tensors[1].value[0][0] = std::nan("");
  CheckpointState state = read_state(second);
  state.checksums[name] = write_safetensors(second + "/" + name, tensors, {});
  put_bytes(second + "/state.json", render_state(state));
  const auto load_second = [&](size_t i) {
    const CheckpointPart part{i, 2};
    return error_of([&] {
      load_optimizer_rows(run_, 2, part,
                          [&](const std::string&, at::IntArrayRef sizes) {
                            return wanted(part, sizes);
                          });
    });
  };
  EXPECT_EQ(load_second(0), "");
  const auto said = load_second(1);
  EXPECT_TRUE(said.starts_with(second + "/" + name + ": " + tensors[1].name +
                               " holds NaN or infinity"))
      << said;
  EXPECT_TRUE(said.ends_with("to go on from step 1")) << said;
}

// Of a stranger's headers: without columns they take no bytes.
TEST_F(CheckpointRows, MoreRowsThanCanBeCountedAreRefused) {
  const int64_t many = (int64_t{1} << 62) + 1;
  save_in_parts(run_, saved_, false, 2);
  CheckpointState state = read_state(first_);
  for (const char* name : {"optimizer-00001-of-00002.safetensors",
                           "optimizer-00002-of-00002.safetensors"}) {
    state.checksums[name] = write_safetensors(
        first_ + "/" + name, {{"a.m", at::empty({many, 0}, at::kChar)}}, {});
  }
  put_bytes(first_ + "/state.json", render_state(state));
  EXPECT_EQ(latest_error(),
            first_ +
                "/optimizer-00002-of-00002.safetensors: tensor 'a.m' has "
                "too many rows with those of files before");
}

TEST_F(CheckpointRows, WhatTheCallerDoesNotKnowIsItsError) {
  save_in_parts(run_, saved_, false, 2);
  save(2);
  EXPECT_EQ(error_of([&] {
              load_optimizer_rows(
                  run_, 2, {},
                  [](const std::string& name, at::IntArrayRef) -> RowRange {
                    throw Error("what is " + name + "?");
                  });
            }),
            "what is t?");
}

}  // namespace
}  // namespace reformer
