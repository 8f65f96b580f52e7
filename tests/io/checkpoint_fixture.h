// A run's folder in which tests save, damage and load tiny checkpoints.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "reformer/io/checkpoint.h"
#include "tests/io/checkpoint_support.h"
#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"
#include "tests/support/latest_checkpoint.h"

namespace reformer {

using Names = std::set<std::string>;

inline const char* const kFiles[] = {"model.safetensors",
                                     "optimizer.safetensors", "state.json"};

inline Names names_in(const std::string& folder) {
  Names names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename());
  }
  return names;
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

}  // namespace reformer
