#include "cli/reproduce/train_or_resume.h"

#include <filesystem>

#include "cli/screen/open_task.h"
#include "cli/screen/train_screen.h"
#include "reformer/base/errors.h"
#include "reformer/config/config_json.h"
#include "reformer/io/checkpoint.h"
#include "reformer/train/trainer.h"

namespace reformer::cli {
namespace {

namespace fs = std::filesystem;

bool is_begun(const ExperimentRun& run) {
  return fs::exists(fs::path(run.folder) / "config.json");
}

void require_same_settings(const ExperimentRun& run) {
  const auto before = config_to_json(load_run_config(run.folder));
  require(before == config_to_json(run.config), run.folder,
          ": was begun with other settings (its config.json has them); "
          "choose another --out");
}

}  // namespace

bool train_or_resume(const ExperimentRun& given, at::Device device,
                     const std::atomic<bool>& stop) {
  ExperimentRun run = given;
  const auto tokenizer = open_tokenizer(run.config, &stop);
  const bool resume = is_begun(run);
  if (resume) require_same_settings(run);
  const auto latest = load_latest_state(run.folder);
  // It saves before it evaluates for the last time.
  const bool done = latest && latest->step >= run.config.train.steps &&
                    latest->evaluated_step == latest->step;
  if (done) return true;
  const auto task = open_task(run.config, &stop, tokenizer);
  TrainScreen screen(*task);
  screen.say(run.title + ": " + run.folder + "\n");
  const auto result =
      train(run.config, *task, {run.folder, resume, device}, stop, screen);
  return result.end != TrainEnd::kStopped;
}

}  // namespace reformer::cli
