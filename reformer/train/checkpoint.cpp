#include "reformer/train/checkpoint.h"

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "reformer/core/atomic_file.h"
#include "reformer/core/config_json.h"
#include "reformer/core/errors.h"
#include "reformer/train/checkpoint_folder.h"
#include "reformer/train/checkpoint_state.h"
#include "reformer/train/input_file.h"
#include "reformer/train/safetensors.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

constexpr char kModel[] = "model.safetensors";
constexpr char kOptimizer[] = "optimizer.safetensors";
constexpr char kState[] = "state.json";
constexpr char kBest[] = "best";
constexpr char kConfig[] = "config.json";

// Of an exported file: for the names of its tensors.
constexpr int64_t kHeaderRoom = 64 << 10;

template <class Function>
auto with_errors(Function function) {
  try {
    return function();
  } catch (const fs::filesystem_error& error) {
    throw Error(error.path1().string() + ": " + error.code().message());
  }
}

// --- Saving -----------------------------------------------------------------

// Renamed first: a kill in between must not leave half a checkpoint under a
// checkpoint's name.
void remove_folder(const fs::path& folder) {
  const fs::path unfinished = unfinished_name(folder);
  fs::rename(folder, unfinished);
  fs::remove_all(unfinished);
}

// What a kill left behind.
void remove_leftovers(const fs::path& run) {
  for (const fs::path& path : entries_of(run)) {
    if (is_unfinished(path)) fs::remove_all(path);
    const auto found = checkpoint_at(path);
    if (found && found->replaced && fs::exists(run / folder_name(found->step)))
      remove_folder(path);
  }
}

bool was_best(const fs::path& run, int64_t step) {
  for (const auto& found : checkpoints_in(run)) {
    if (found.step == step) return is_best(found);
  }
  return false;
}

// A folder that is filled beside `path` and then takes its place.
class UnfinishedFolder {
 public:
  explicit UnfinishedFolder(const fs::path& path)
      : path_(path), unfinished_(unfinished_name(path)) {
    fs::create_directory(unfinished_);
  }
  ~UnfinishedFolder() {
    std::error_code ignored;
    fs::remove_all(unfinished_, ignored);
  }
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

  const fs::path& path() const { return unfinished_; }

  // No rename replaces a folder that is not empty, so the old one steps aside
  // under a name that loading knows.
  void commit() {
    const fs::path replaced = replaced_name(path_);
    if (fs::exists(path_)) {
      if (fs::exists(replaced)) remove_folder(replaced);
      fs::rename(path_, replaced);
    }
    fs::rename(unfinished_, path_);
    sync_folder(path_.parent_path());
    if (fs::exists(replaced)) remove_folder(replaced);
  }

 private:
  fs::path path_;
  fs::path unfinished_;
};

using Files = std::vector<std::pair<std::string, std::vector<NamedTensor>>>;

void write_checkpoint(const fs::path& folder, const Checkpoint& checkpoint,
                      const Files& files, bool best) {
  CheckpointState state{checkpoint, {}};
  const Metadata metadata{{"format", "pt"},
                          {"step", std::to_string(checkpoint.step)}};
  for (const auto& [name, tensors] : files) {
    state.checksums[name] = write_safetensors(folder / name, tensors, metadata);
  }
  if (best) write_file_atomically(folder / kBestMark, "");
  write_file_atomically(folder / kState, render_state(state));
}

// The parameters in files of at most so many bytes (0: one), in their order.
Files parameter_files(const std::vector<NamedTensor>& parameters,
                      int64_t most_bytes) {
  std::vector<std::vector<NamedTensor>> parts(1);
  int64_t bytes = 0;
  for (const auto& parameter : parameters) {
    const auto more = static_cast<int64_t>(parameter.value.nbytes());
    require(most_bytes == 0 || more + kHeaderRoom <= most_bytes,
            "export: ", parameter.name, " alone has ", more,
            " bytes; a larger --file-size is required");
    if (most_bytes > 0 && bytes + more + kHeaderRoom > most_bytes) {
      parts.emplace_back();
      bytes = 0;
    }
    parts.back().push_back(parameter);
    bytes += more;
  }
  if (parts.size() == 1) return {{kModel, parts[0]}};
  Files files;
  for (size_t i = 0; i < parts.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", i + 1,
                  parts.size());
    files.emplace_back(name, parts[i]);
  }
  return files;
}

// Loading does not need the link, so a file system without links is no error;
// and what is no link is not ours (a copy of the run's folder may have turned
// it into a folder).
void link_best(const fs::path& run, const fs::path& target) {
  const fs::path link = run / kBest;
  std::error_code ignored;
  const bool is_link = fs::is_symlink(link);
  if (is_link && fs::read_symlink(link, ignored) == target) return;
  if (!is_link && fs::exists(link)) return;
  const fs::path unfinished = unfinished_name(link);
  fs::create_directory_symlink(target, unfinished, ignored);
  fs::rename(unfinished, link, ignored);
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

// --- Loading ----------------------------------------------------------------

std::string read_text(const fs::path& path) {
  const InputFile file(path);
  return file.read(0, file.size());
}

std::vector<NamedTensor> load_tensors(const fs::path& path,
                                      const CheckpointState& state) {
  SafetensorsFile file = read_safetensors(path);
  const auto checksum = state.checksums.find(path.filename());
  require(
      checksum != state.checksums.end() && checksum->second == file.checksum,
      path.string(), ": is not the file that ", kState,
      " beside it belongs to");
  return std::move(file.tensors);
}

Checkpoint load_folder(const fs::path& folder) {
  const fs::path path = folder / kState;
  CheckpointState state = parse_state(read_text(path), path);
  // An exported model may have several files of parameters, in the order of
  // their names, and has no optimizer state.
  for (const auto& [name, checksum] : state.checksums) {
    auto& tensors = name == kOptimizer ? state.checkpoint.optimizer
                                       : state.checkpoint.parameters;
    for (auto& tensor : load_tensors(folder / name, state)) {
      tensors.push_back(std::move(tensor));
    }
  }
  return std::move(state.checkpoint);
}

std::string how_to_go_on(const std::vector<FoundCheckpoint>& found) {
  if (found.size() < 2) return "";
  return "; remove " + found[0].folder.string() + " to go on from step " +
         std::to_string(found[1].step);
}

// The checkpoint that `choose` picks of those found, or nothing. A run that is
// still going may remove it meanwhile, and between two names that are read may
// replace the one by the other: then a second look finds another.
template <class Choose>
std::optional<Checkpoint> load_chosen(const fs::path& run, Choose choose) {
  for (int look = 0; look < 10 && fs::is_directory(run); ++look) {
    const auto found = checkpoints_in(run);
    if (found.empty()) continue;
    const FoundCheckpoint& chosen = choose(found);
    try {
      return load_folder(chosen.folder);
    } catch (const Error& error) {
      if (!fs::exists(chosen.folder)) continue;
      const bool newest = &chosen == &found[0];
      throw Error(error.what() + (newest ? how_to_go_on(found) : ""));
    }
  }
  return {};
}

}  // namespace

void save_checkpoint(const std::string& directory, const Checkpoint& checkpoint,
                     bool best) {
  with_errors([&] {
    const fs::path run(directory);
    remove_leftovers(run);
    UnfinishedFolder folder(run / folder_name(checkpoint.step));
    write_checkpoint(
        folder.path(), checkpoint,
        {{kModel, checkpoint.parameters}, {kOptimizer, checkpoint.optimizer}},
        best || was_best(run, checkpoint.step));
    folder.commit();
    prune(run, checkpoint.step, checkpoint.config.train.keep);
  });
}

std::optional<Checkpoint> load_latest_checkpoint(const std::string& directory) {
  return with_errors([&] {
    return load_chosen(directory,
                       [](const auto& found) -> const FoundCheckpoint& {
                         return found.front();
                       });
  });
}

Checkpoint load_best_checkpoint(const std::string& directory) {
  return with_errors([&] {
    require(fs::exists(directory), directory, ": no such folder");
    if (fs::exists(fs::path(directory) / kState)) return load_folder(directory);
    auto checkpoint =
        load_chosen(directory, [](const auto& found) -> const FoundCheckpoint& {
          const FoundCheckpoint* best = newest_best(found);
          return best ? *best : found.front();
        });
    require(checkpoint.has_value(), directory, ": holds no checkpoint");
    return std::move(*checkpoint);
  });
}

void export_model(const std::string& directory, const Checkpoint& checkpoint,
                  at::ScalarType type, int64_t most_bytes) {
  with_errors([&] {
    const fs::path path(directory);
    require(!fs::exists(path), directory,
            ": exists already; choose another folder");
    std::vector<NamedTensor> rounded;
    for (const auto& [name, value] : checkpoint.parameters) {
      rounded.push_back({name, value.detach().to(type)});
    }
    const auto files = parameter_files(rounded, most_bytes);
    if (path.has_parent_path()) fs::create_directories(path.parent_path());
    UnfinishedFolder folder(fs::absolute(path));
    write_checkpoint(folder.path(), checkpoint, files, /*best=*/false);
    folder.commit();
  });
}

void create_run_directory(const std::string& directory, const Config& config) {
  with_errors([&] {
    const fs::path run(directory);
    fs::create_directories(run);
    const bool holds_run =
        fs::exists(run / kConfig) || !checkpoints_in(run).empty();
    require(!holds_run, directory,
            ": already holds a run; go on with it (--resume) or choose another "
            "folder");
    remove_leftovers(run);
    require(fs::is_empty(run), directory,
            ": exists and is not empty; choose another folder");
    write_file_atomically(run / kConfig, config_to_json(config) + "\n");
  });
}

Config load_run_config(const std::string& directory) {
  if (auto checkpoint = load_latest_checkpoint(directory)) {
    return checkpoint->config;
  }
  const fs::path file = fs::path(directory) / kConfig;
  require(fs::exists(file), directory, ": holds no run");
  return config_from_json(read_text(file), file.string());
}

}  // namespace reformer
