#include "reformer/io/checkpoint.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/base/xxhash64.h"
#include "reformer/config/config_json.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/checkpoint_state.h"
#include "reformer/io/finite.h"
#include "reformer/io/safetensors.h"
#include "reformer/io/unfinished_folder.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

// Of an exported file: for the names of its tensors.
constexpr int64_t kHeaderRoom = 64 << 10;

// A killed record_evaluation's, in a checkpoint.
void remove_leftovers_in(const fs::path& folder) {
  for (const fs::path& path : entries_of(folder)) {
    const std::string name = unfinished_target(path);
    if (name == kBestMark || name == kStateFile) fs::remove(path);
  }
}

std::optional<FoundCheckpoint> checkpoint_of(const fs::path& run,
                                             int64_t step) {
  for (const auto& found : checkpoints_in(run)) {
    if (found.step == step) return found;
  }
  return {};
}

bool was_best(const fs::path& run, int64_t step) {
  const auto found = checkpoint_of(run, step);
  return found && is_best(*found);
}

using Files = std::vector<std::pair<std::string, std::vector<NamedTensor>>>;

void write_checkpoint(const fs::path& folder, const Checkpoint& checkpoint,
                      const Files& files, bool best) {
  CheckpointState state{checkpoint, {}};
  const Metadata metadata{{"format", "pt"},
                          {"step", std::to_string(checkpoint.step)}};
  for (const auto& [name, tensors] : files) {
    state.checksums[name] = write_safetensors(folder / name, tensors, metadata);
  }
  if (!checkpoint.tokenizer.empty()) {
    write_file_atomically(folder / kTokenizerFile, checkpoint.tokenizer);
    state.checksums[kTokenizerFile] = xxhash64_hex(checkpoint.tokenizer);
  }
  if (best) write_file_atomically(folder / kBestMark, "");
  write_file_atomically(folder / kStateFile, render_state(state));
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
  if (parts.size() == 1) return {{kModelFile, parts[0]}};
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
  const fs::path link = run / kBestLink;
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

void require_finite(const std::vector<NamedTensor>& tensors, int64_t step) {
  const std::string wrong = first_not_finite(tensors);
  if (wrong.empty()) return;
  throw NotFinite("checkpoint: " + wrong + " is not finite after step " +
                  std::to_string(step) + ", and is not saved");
}

}  // namespace

void save_checkpoint(const std::string& directory, const Checkpoint& checkpoint,
                     bool best) {
  with_errors([&] {
    const fs::path run(directory);
    for (const auto* tensors :
         {&checkpoint.parameters, &checkpoint.optimizer}) {
      require_finite(*tensors, checkpoint.step);
    }
    remove_leftovers(run);
    UnfinishedFolder folder(run / folder_name(checkpoint.step));
    write_checkpoint(folder.path(), checkpoint,
                     {{kModelFile, checkpoint.parameters},
                      {kOptimizerFile, checkpoint.optimizer}},
                     best || was_best(run, checkpoint.step));
    folder.commit();
    prune(run, checkpoint.step, checkpoint.config.train.keep);
  });
}

// The mark comes first: a checkpoint that counts as evaluated has it.
void record_evaluation(const std::string& directory,
                       const EvaluatedCheckpoint& evaluated) {
  with_errors([&] {
    const fs::path run(directory);
    const auto found = checkpoint_of(run, evaluated.step);
    require(found.has_value(), directory, ": the checkpoint of step ",
            evaluated.step, ", saved a moment ago, is gone");
    const fs::path& folder = found->folder;
    CheckpointState state = read_state(folder);
    remove_leftovers_in(folder);
    if (evaluated.best) write_file_atomically(folder / kBestMark, "");
    state.checkpoint.evaluated_step = evaluated.step;
    state.checkpoint.best_loss = evaluated.best_loss;
    state.checkpoint.has_best = evaluated.has_best;
    write_file_atomically(folder / kStateFile, render_state(state));
    prune(run, evaluated.step, state.checkpoint.config.train.keep);
  });
}

void finish_saving(const std::string& directory, int64_t keep) {
  with_errors([&] {
    remove_leftovers(directory);
    const auto found = checkpoints_in(directory);
    if (!found.empty()) prune(directory, found[0].step, keep);
  });
}

namespace {

// Which file has which parameter, as other programs look for it where there are
// several.
std::string index_of(const Files& files) {
  nlohmann::ordered_json index;
  int64_t bytes = 0;
  for (const auto& [file, tensors] : files) {
    for (const auto& [name, value] : tensors) {
      index["weight_map"][name] = file;
      bytes += static_cast<int64_t>(value.nbytes());
    }
  }
  index["metadata"]["total_size"] = bytes;
  return index.dump(2) + "\n";
}

// What it learnt from lies on the machine where it did.
Checkpoint without_paths(Checkpoint checkpoint) {
  auto& task = checkpoint.config.task;
  for (auto* path : {&task.data, &task.validation, &task.test, &task.cache}) {
    path->clear();
  }
  // What it was called elsewhere; the file beside it is what counts.
  if (!task.tokenizer.empty()) task.tokenizer = kTokenizerFile;
  return checkpoint;
}

}  // namespace

void export_model(const std::string& directory, const Checkpoint& trained,
                  at::ScalarType type, int64_t most_bytes) {
  const Checkpoint checkpoint = without_paths(trained);
  with_errors([&] {
    std::vector<NamedTensor> rounded;
    for (const auto& [name, value] : checkpoint.parameters) {
      rounded.push_back({name, value.detach().to(type)});
    }
    const std::string wrong = first_not_finite(rounded);
    require(wrong.empty(), "export: ", wrong, " holds numbers too large for ",
            type, "; give --type float32");
    const auto files = parameter_files(rounded, most_bytes);
    make_folder(directory, [&](const fs::path& folder) {
      write_checkpoint(folder, checkpoint, files, /*best=*/false);
      write_file_atomically(folder / kConfigFile,
                            config_to_json(checkpoint.config) + "\n");
      if (files.size() > 1) {
        write_file_atomically(folder / kIndexFile, index_of(files));
      }
    });
  });
}

}  // namespace reformer
