#include <filesystem>
#include <system_error>

#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/base/xxhash64.h"
#include "reformer/config/config_json.h"
#include "reformer/io/checkpoint.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/checkpoint_parts.h"
#include "reformer/io/checkpoint_state.h"
#include "reformer/io/finite.h"
#include "reformer/io/safetensors.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

std::vector<NamedTensor> load_tensors(const fs::path& path,
                                      const CheckpointState& state) {
  SafetensorsFile file = read_safetensors(path);
  const auto checksum = state.checksums.find(path.filename());
  require(
      checksum != state.checksums.end() && checksum->second == file.checksum,
      path.string(), ": is not the file that ", kStateFile,
      " beside it belongs to");
  return std::move(file.tensors);
}

std::string load_text(const fs::path& path, const std::string& checksum) {
  std::string bytes = read_text(path);
  require(xxhash64_hex(bytes) == checksum, path.string(),
          ": is not the file that ", kStateFile, " beside it belongs to");
  return bytes;
}

void require_finite(const std::vector<NamedTensor>& tensors,
                    const fs::path& path) {
  const std::string wrong = first_not_finite(tensors);
  require(wrong.empty(), path.string(), ": ", wrong,
          " holds NaN or infinity: the model has diverged and is of no use");
}

// Whoever only uses the model can do with any state of the optimizer.
enum class Purpose { kUse, kTraining };

Checkpoint load_folder(const fs::path& folder, Purpose purpose) {
  CheckpointState state = read_state(folder);
  // There may be several files of parameters and of optimizer state, in the
  // order of their names; an exported model has no state.
  for (const auto& [name, checksum] : state.checksums) {
    require(fs::path(name).filename() == name, folder.string(),
            ": the name of a file beside ", kStateFile, " is required, got ",
            name);
    if (name == kTokenizerFile) {
      state.checkpoint.tokenizer = load_text(folder / name, checksum);
      continue;
    }
    const bool optimizer = is_optimizer_file(name);
    auto loaded = load_tensors(folder / name, state);
    if (!optimizer || purpose == Purpose::kTraining) {
      require_finite(loaded, folder / name);
    }
    auto& tensors =
        optimizer ? state.checkpoint.optimizer : state.checkpoint.parameters;
    for (auto& tensor : loaded) tensors.push_back(std::move(tensor));
  }
  state.checkpoint.optimizer = joined_rows(state.checkpoint.optimizer);
  return std::move(state.checkpoint);
}

std::string how_to_go_on(const std::vector<FoundCheckpoint>& found) {
  if (found.size() < 2) return "";
  const std::string folder = found[0].folder.string();
  return "; move " + folder + " aside (to " + folder +
         ".damaged) to go on from step " + std::to_string(found[1].step);
}

// The checkpoint that `choose` picks of those found, or nothing. A run that is
// still going may remove it meanwhile, and between two names that are read may
// replace the one by the other: then a second look finds another.
template <class Choose>
std::optional<Checkpoint> load_chosen(const fs::path& run, Purpose purpose,
                                      Choose choose) {
  for (int look = 0; look < 10 && fs::is_directory(run); ++look) {
    const auto found = checkpoints_in(run);
    if (found.empty()) continue;
    const FoundCheckpoint& chosen = choose(found);
    try {
      return load_folder(chosen.folder, purpose);
    } catch (const Unreadable&) {
      if (fs::exists(chosen.folder)) throw;
    } catch (const Error& error) {
      if (!fs::exists(chosen.folder)) continue;
      const bool newest = &chosen == &found[0];
      throw Error(error.what() + (newest ? how_to_go_on(found) : ""));
    }
  }
  return {};
}

}  // namespace

std::optional<Checkpoint> load_latest_checkpoint(const std::string& directory) {
  return with_errors([&] {
    return load_chosen(directory, Purpose::kTraining,
                       [](const auto& found) -> const FoundCheckpoint& {
                         return found.front();
                       });
  });
}

Checkpoint load_best_checkpoint(const std::string& directory) {
  return with_errors([&] {
    require(fs::exists(directory), directory, ": no such folder");
    if (fs::exists(fs::path(directory) / kStateFile))
      return load_folder(directory, Purpose::kUse);
    auto checkpoint =
        load_chosen(directory, Purpose::kUse,
                    [](const auto& found) -> const FoundCheckpoint& {
                      const FoundCheckpoint* best = newest_best(found);
                      return best ? *best : found.front();
                    });
    require(checkpoint.has_value(), directory, ": holds no checkpoint");
    return std::move(*checkpoint);
  });
}

Config load_run_config(const std::string& directory) {
  if (auto checkpoint = load_latest_checkpoint(directory)) {
    return checkpoint->config;
  }
  const fs::path file = fs::path(directory) / kConfigFile;
  require(fs::exists(file), directory, ": holds no run");
  return config_from_json(read_text(file), file.string());
}

std::string load_run_tokenizer(const std::string& directory) {
  return with_errors([&] {
    const auto found = checkpoints_in(directory);
    if (!found.empty()) {
      const auto checksums = read_state(found[0].folder).checksums;
      const auto checksum = checksums.find(kTokenizerFile);
      if (checksum == checksums.end()) return std::string();
      return load_text(found[0].folder / kTokenizerFile, checksum->second);
    }
    const fs::path file = fs::path(directory) / kTokenizerFile;
    return fs::exists(file) ? read_text(file) : std::string();
  });
}

}  // namespace reformer
