// Which checkpoints a run's folder holds, by their names alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace reformer {

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

}  // namespace reformer
