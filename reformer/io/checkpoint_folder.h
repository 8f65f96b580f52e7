// Which checkpoints a run's folder holds, by their names alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reformer/base/errors.h"

namespace reformer {

// Files of a run's folder, and of a checkpoint.
inline constexpr char kConfigFile[] = "config.json";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
inline constexpr char kBestLink[] = "best";
inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";
inline constexpr char kStateFile[] = "state.json";
inline constexpr char kTokenizerFile[] = "tokenizer.model";
inline constexpr char kIndexFile[] = "model.safetensors.index.json";

// "model-00002-of-00004.safetensors", of "model.safetensors", 1 and 4.
std::string part_name(const std::string& file, size_t part, size_t parts);

// optimizer.safetensors, or a part of it.
bool is_optimizer_file(const std::string& file);

// An empty file in a checkpoint that was the best when it was saved.
inline constexpr char kBestMark[] = "best";

struct FoundCheckpoint {
  int64_t step;
  bool replaced;  // step-00001000.old: a newer one was to take its place
  std::filesystem::path folder;
};

std::string folder_name(int64_t step);  // "step-00001000"
std::filesystem::path replaced_name(const std::filesystem::path& folder);

std::vector<std::filesystem::path> entries_of(
    const std::filesystem::path& folder);

// Nothing where `folder` is no folder or has another name.
std::optional<FoundCheckpoint> checkpoint_at(
    const std::filesystem::path& folder);

// Newest first; a replaced one only where its replacement is missing.
std::vector<FoundCheckpoint> checkpoints_in(const std::filesystem::path& run);

bool is_best(const FoundCheckpoint& checkpoint);

// The newest that is best: each one is better than those before. May be null.
const FoundCheckpoint* newest_best(
    const std::vector<FoundCheckpoint>& newest_first);

// The one of that step, replaced or not.
std::optional<FoundCheckpoint> find_checkpoint(const std::filesystem::path& run,
                                               int64_t step);

// Whether that step was saved before, and was the best.
bool was_best(const std::filesystem::path& run, int64_t step);

// Removes all but the last `keep`, the newest and the best, and links the best.
void prune(const std::filesystem::path& run, int64_t newest, int64_t keep);

// What a killed run left in its folder: .tmp-NAME-PID of a NAME that runs
// write. Other people's files may begin with .tmp- too.
bool is_leftover(const std::filesystem::path& path);

// Renamed first: a kill in between must not leave half a checkpoint under a
// checkpoint's name.
void remove_folder(const std::filesystem::path& folder);

// Of a run whose lock the caller holds.
void remove_leftovers(const std::filesystem::path& run);

// The system's errors as sentences that begin with the path.
template <class Function>
auto with_errors(Function function) {
  try {
    return function();
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(error.path1().string() + ": " + error.code().message());
  }
}

}  // namespace reformer
