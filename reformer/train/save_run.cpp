#include "reformer/train/save_run.h"

#include <filesystem>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/base/instruction_set.h"
#include "reformer/base/parallel.h"
#include "reformer/config/config_json.h"
#include "reformer/device/device.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/checkpoint_state.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

void require_older(const std::string& directory, const FoundCheckpoint& newest,
                   const Checkpoint& checkpoint) {
  const auto found = read_state(newest.folder).checkpoint;
  require(
      config_to_json(found.config) == config_to_json(checkpoint.config),
      directory,
      ": holds a run of other settings; save this one in a folder of its own");
  require(found.step <= checkpoint.step, directory, ": holds step ", found.step,
          " already, and this is step ", checkpoint.step,
          "; save it in a folder of its own");
}

}  // namespace

std::string kernels_on(at::Device device) {
  return device.is_cpu() ? name_of(instruction_set())
                         : cuda_device_name(device);
}

std::string tokenizer_file(const Task& task) {
  const auto tokenizer = task.tokenizer();
  return tokenizer ? tokenizer->file() : std::string();
}

Checkpoint checkpoint_of(Learner& learner, int64_t step) {
  learner.synchronize();
  Checkpoint checkpoint;
  checkpoint.config = learner.model().config();
  checkpoint.step = step;
  checkpoint.threads = threads();
  checkpoint.instruction_set = kernels_on(learner.model().placement().device);
  for (const auto& parameter : learner.model().parameters()) {
    checkpoint.parameters.push_back({parameter.name, parameter.value.detach()});
  }
  checkpoint.optimizer = learner.optimizer().state();
  return checkpoint;
}

void save_run(const std::string& directory, Learner& learner, int64_t step,
              const std::string& tokenizer) {
  auto checkpoint = checkpoint_of(learner, step);
  checkpoint.tokenizer = tokenizer;
  with_errors([&] {
    std::vector<FoundCheckpoint> found;
    if (fs::is_directory(directory)) found = checkpoints_in(directory);
    if (!found.empty()) require_older(directory, found.front(), checkpoint);
    const RunLock lock =
        found.empty()
            ? create_run_directory(directory, checkpoint.config, tokenizer)
            : RunLock(directory);
    save_checkpoint(directory, checkpoint, /*best=*/true);
  });
}

}  // namespace reformer
