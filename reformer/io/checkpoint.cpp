#include "reformer/io/checkpoint.h"

#include <filesystem>

#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/config/config_json.h"
#include "reformer/io/checkpoint_files.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/checkpoint_state.h"
#include "reformer/io/finite.h"
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

// The parameters in files of at most so many bytes (0: one), in their order.
TensorFiles parameter_files(const std::vector<NamedTensor>& parameters,
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
  TensorFiles files;
  for (size_t i = 0; i < parts.size(); ++i) {
    files.emplace_back(part_name(kModelFile, i, parts.size()), parts[i]);
  }
  return files;
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
    write_state(folder.path(), checkpoint,
                write_tensors(folder.path(),
                              {{kModelFile, checkpoint.parameters},
                               {kOptimizerFile, checkpoint.optimizer}},
                              checkpoint.step),
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
    const auto found = find_checkpoint(run, evaluated.step);
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
      write_state(folder, checkpoint,
                  write_tensors(folder, files, checkpoint.step),
                  /*best=*/false);
      write_file_atomically(folder / kConfigFile,
                            config_to_json(checkpoint.config) + "\n");
      if (files.size() > 1) write_index(folder, files);
    });
  });
}

}  // namespace reformer
