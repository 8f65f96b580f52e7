#include "reformer/io/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

#include "reformer/base/atomic_file.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kReplaced = ".old";

struct CheckpointName {
  int64_t step;
  bool replaced;
};

std::optional<CheckpointName> checkpoint_named(std::string name) {
  const bool replaced = name.ends_with(kReplaced);
  if (replaced) name.resize(name.size() - kReplaced.size());
  if (!name.starts_with(kPrefix)) return {};
  int64_t step = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(),
                  step);
  if (name != folder_name(step)) return {};
  return CheckpointName{step, replaced};
}

// Loading does not need the link, so a file system without links is no error;
// and what is no link is not ours (a copy of the run's folder may have turned
// it into a folder).
void link_best(const fs::path& run, const fs::path& target) {
  const fs::path link = run / kBestLink;
  std::error_code ignored;
  const bool is_link = fs::is_symlink(link);
  if (is_link && fs::read_symlink(link, ignored) == target) return;
  if (!is_link && fs::exists(link)) return;
  const fs::path unfinished = unfinished_name(link);
  fs::create_directory_symlink(target, unfinished, ignored);
  fs::rename(unfinished, link, ignored);
}

}  // namespace

std::string folder_name(int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return std::string(kPrefix) + digits;
}

fs::path replaced_name(const fs::path& folder) {
  return folder.string() + std::string(kReplaced);
}

std::string part_name(const std::string& file, size_t part, size_t parts) {
  const size_t dot = file.rfind('.');
  char numbers[64];
  std::snprintf(numbers, sizeof(numbers), "-%05zu-of-%05zu", part + 1, parts);
  return file.substr(0, dot) + numbers + file.substr(dot);
}

bool is_optimizer_file(const std::string& file) {
  return file == kOptimizerFile || file.starts_with("optimizer-");
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder)) {
    entries.push_back(entry.path());
  }
  return entries;
}

std::optional<FoundCheckpoint> checkpoint_at(const fs::path& folder) {
  const auto named = checkpoint_named(folder.filename().string());
  if (!named || !fs::is_directory(folder)) return {};
  return FoundCheckpoint{named->step, named->replaced, folder};
}

std::vector<FoundCheckpoint> checkpoints_in(const fs::path& run) {
  std::vector<FoundCheckpoint> found;
  for (const fs::path& path : entries_of(run)) {
    const auto checkpoint = checkpoint_at(path);
    if (checkpoint) found.push_back(*checkpoint);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(-a.step, a.replaced) < std::pair(-b.step, b.replaced);
  });
  const auto same_step = [](const auto& a, const auto& b) {
    return a.step == b.step;
  };
  found.erase(std::unique(found.begin(), found.end(), same_step), found.end());
  return found;
}

bool is_best(const FoundCheckpoint& checkpoint) {
  return fs::exists(checkpoint.folder / kBestMark);
}

const FoundCheckpoint* newest_best(
    const std::vector<FoundCheckpoint>& newest_first) {
  const auto found =
      std::find_if(newest_first.begin(), newest_first.end(), is_best);
  return found == newest_first.end() ? nullptr : &*found;
}

bool is_leftover(const fs::path& path) {
  const std::string name = unfinished_target(path);
  return name == kConfigFile || name == kMetricsFile || name == kBestLink ||
         name == kTokenizerFile || checkpoint_named(name).has_value();
}

void remove_folder(const fs::path& folder) {
  const fs::path unfinished = unfinished_name(folder);
  fs::rename(folder, unfinished);
  fs::remove_all(unfinished);
}

void remove_leftovers(const fs::path& run) {
  for (const fs::path& path : entries_of(run)) {
    if (is_leftover(path)) fs::remove_all(path);
    const auto found = checkpoint_at(path);
    if (found && found->replaced && fs::exists(run / folder_name(found->step)))
      remove_folder(path);
  }
}

std::optional<FoundCheckpoint> find_checkpoint(const fs::path& run,
                                               int64_t step) {
  for (const auto& found : checkpoints_in(run)) {
    if (found.step == step) return found;
  }
  return {};
}

bool was_best(const fs::path& run, int64_t step) {
  const auto found = find_checkpoint(run, step);
  return found && is_best(*found);
}

void prune(const fs::path& run, int64_t newest, int64_t keep) {
  const auto found = checkpoints_in(run);
  const FoundCheckpoint* best = newest_best(found);
  if (best) link_best(run, best->folder.filename());
  for (size_t i = 0; i < found.size(); ++i) {
    const bool kept = static_cast<int64_t>(i) < keep ||
                      found[i].step == newest || &found[i] == best;
    if (!kept) remove_folder(found[i].folder);
  }
  sync_folder(run);
}

}  // namespace reformer
