#include <exception>
#include <filesystem>
#include <system_error>

#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/base/xxhash64.h"
#include "reformer/config/config_json.h"
#include "reformer/io/checkpoint.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/checkpoint_parts.h"
#include "reformer/io/checkpoint_rows.h"
#include "reformer/io/checkpoint_state.h"
#include "reformer/io/safetensors.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

std::vector<NamedTensor> load_tensors(const fs::path& path,
                                      const CheckpointState& state) {
  SafetensorsFile file = read_safetensors(path);
  require_checksum(path, file.checksum, state.checksums);
  return std::move(file.tensors);
}

std::string load_text(const fs::path& path, const std::string& checksum) {
  std::string bytes = read_text(path);
  require_checksum(path, xxhash64_hex(bytes),
                   {{path.filename().string(), checksum}});
  return bytes;
}

// All but the optimizer's state.
CheckpointState load_model_state(const fs::path& folder) {
  CheckpointState state = read_state(folder);
  // There may be several files of parameters, in the order of their names.
  for (const auto& [name, checksum] : state.checksums) {
    require(fs::path(name).filename() == name, folder.string(),
            ": the name of a file beside ", kStateFile, " is required, got ",
            name);
    if (name == kTokenizerFile) {
      state.checkpoint.tokenizer = load_text(folder / name, checksum);
      continue;
    }
    if (is_optimizer_file(name)) continue;
    auto loaded = load_tensors(folder / name, state);
    require_finite(loaded, folder / name);
    for (auto& tensor : loaded) {
      state.checkpoint.parameters.push_back(std::move(tensor));
    }
  }
  return state;
}

Checkpoint load_model(const fs::path& folder) {
  return load_model_state(folder).checkpoint;
}

// As one rank goes on from it that keeps all; an exported model has no state.
Checkpoint load_whole(const fs::path& folder) {
  auto [checkpoint, checksums] = load_model_state(folder);
  checkpoint.optimizer = read_optimizer_rows(
      folder, checksums, /*reader=*/{},
      [](const std::string&, at::IntArrayRef sizes) -> RowRange {
        return {0, row_count(sizes)};
      });
  return std::move(checkpoint);
}

std::string how_to_go_on(const std::vector<FoundCheckpoint>& found) {
  if (found.size() < 2) return "";
  const std::string folder = found[0].folder.string();
  return "; move " + folder + " aside (to " + folder +
         ".damaged) to go on from step " + std::to_string(found[1].step);
}

using Found = std::vector<FoundCheckpoint>;

const FoundCheckpoint& newest_of(const Found& found) { return found.front(); }

const FoundCheckpoint& best_of(const Found& found) {
  const FoundCheckpoint* best = newest_best(found);
  return best ? *best : found.front();
}

const FoundCheckpoint& of_step(const Found& found, int64_t step) {
  for (const auto& one : found) {
    if (one.step == step) return one;
  }
  throw Error("the checkpoint of step " + std::to_string(step) +
              " is no longer there");
}

// load(folder) of the checkpoint that `choose` picks of those found, or
// nothing. A run that is still going may remove it meanwhile, and between two
// names that are read may replace the one by the other: then a second look
// finds another.
template <class Choose, class Load>
auto load_chosen(const fs::path& run, Choose choose, Load load)
    -> std::optional<decltype(load(run))> {
  for (int look = 0; look < 10 && fs::is_directory(run); ++look) {
    const auto found = checkpoints_in(run);
    if (found.empty()) continue;
    const FoundCheckpoint& chosen = choose(found);
    try {
      return load(chosen.folder);
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

// load(folder) of the best one's folder, or of the newest's.
template <class Load>
auto load_best(const std::string& directory, Load load) {
  return with_errors([&] {
    require(fs::exists(directory), directory, ": no such folder");
    if (fs::exists(fs::path(directory) / kStateFile)) return load(directory);
    auto loaded = load_chosen(directory, best_of, load);
    require(loaded.has_value(), directory, ": holds no checkpoint");
    return std::move(*loaded);
  });
}

Checkpoint state_in(const fs::path& folder) {
  return read_state(folder).checkpoint;
}

}  // namespace

std::optional<Checkpoint> load_latest_model(const std::string& directory) {
  return with_errors(
      [&] { return load_chosen(directory, newest_of, load_model); });
}

std::optional<Checkpoint> load_latest_state(const std::string& directory) {
  return with_errors(
      [&] { return load_chosen(directory, newest_of, state_in); });
}

std::vector<NamedTensor> load_optimizer_rows(const std::string& directory,
                                             int64_t step,
                                             const CheckpointPart& reader,
                                             const WantedRows& wanted) {
  // What the caller does not want is no fault of the file.
  std::exception_ptr callers;
  const WantedRows asked = [&](const std::string& name, at::IntArrayRef sizes) {
    try {
      return wanted(name, sizes);
    } catch (...) {
      callers = std::current_exception();
      throw;
    }
  };
  try {
    auto rows = with_errors([&] {
      return load_chosen(
          directory,
          [&](const Found& found) -> const FoundCheckpoint& {
            return of_step(found, step);
          },
          [&](const fs::path& folder) {
            return read_optimizer_rows(folder, read_state(folder).checksums,
                                       reader, asked);
          });
    });
    require(rows.has_value(), directory, ": holds no checkpoint");
    return std::move(*rows);
  } catch (const Error&) {
    if (callers) std::rethrow_exception(callers);
    throw;
  }
}

Checkpoint load_best_checkpoint(const std::string& directory) {
  return load_best(directory, load_whole);
}

Checkpoint load_best_model(const std::string& directory) {
  return load_best(directory, load_model);
}

Config load_best_config(const std::string& directory) {
  return load_best(directory, state_in).config;
}

Config load_run_config(const std::string& directory) {
  const auto newest = load_latest_state(directory);
  if (newest) return newest->config;
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
