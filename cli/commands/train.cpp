#include "cli/commands/train.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/config_options.h"
#include "cli/process/launched.h"
#include "cli/process/stop_signal.h"
#include "cli/screen/model_summary.h"
#include "cli/screen/open_task.h"
#include "cli/screen/progress.h"
#include "cli/screen/train_screen.h"
#include "reformer/base/errors.h"
#include "reformer/config/config_json.h"
#include "reformer/io/checkpoint.h"
#include "reformer/tasks/task_tokenizer.h"
#include "reformer/train/trainer.h"

namespace reformer::cli {
namespace {

struct TrainOptions {
  ConfigOptions config;
  std::string out;
  std::string data;
  std::string init;
  bool resume = false;
  bool allow_other_data = false;
};

// Of how long, how often and where: the model and its data stay what they are.
const std::vector<std::string> kChangeable = {"train.steps",
                                              "train.minutes",
                                              "train.log_every",
                                              "train.evaluate_every",
                                              "train.evaluate_batches",
                                              "train.keep",
                                              "train.checkpoint_every",
                                              "train.offload",
                                              "train.device_memory",
                                              "train.cuda_graph",
                                              "train.sample_length",
                                              "train.shard_optimizer",
                                              "train.sequence_parallel",
                                              "distributed.timeout",
                                              "distributed.backend",
                                              "train.learning_rate"};

void require_changeable(const std::string& assignment) {
  const std::string key =
      current_key(assignment.substr(0, assignment.find('=')));
  if (std::find(kChangeable.begin(), kChangeable.end(), key) !=
      kChangeable.end()) {
    return;
  }
  std::string keys;
  for (const auto& one : kChangeable) keys += (keys.empty() ? "" : ", ") + one;
  throw Error(
      "--resume: " + key +
      " is the run's own and cannot be changed; --set takes with it: " + keys);
}

// A resumed run is the one in its folder.
Config run_config(const TrainOptions& options) {
  require(options.resume || !options.allow_other_data,
          "--allow-other-data: needs --resume");
  require(!options.resume || options.init.empty(),
          "--init: a new run begins with other weights, a resumed one has its "
          "own; give one of --init and --resume");
  if (!options.resume && options.config.name.empty() && !options.init.empty()) {
    Config config = load_best_config(options.init);
    set_values(config, options.config.assignments);
    return config;
  }
  if (!options.resume) return options.config.load();
  require(options.config.name.empty(), "--resume goes on with the config in ",
          options.out, ": give no CONFIG with it");
  Config config = load_run_config(options.out);
  for (const auto& assignment : options.config.assignments) {
    require_changeable(assignment);
  }
  set_values(config, options.config.assignments);
  return config;
}

Config resolved_config(const TrainOptions& options) {
  Config config = run_config(options);
  if (!options.data.empty()) config.task.data = options.data;
  make_paths_absolute(config.task);
  check(config);
  return config;
}

// A model that is trained further keeps its tokens.
std::shared_ptr<const Tokenizer> tokenizer_of(const Checkpoint& init,
                                              Config& config) {
  auto tokenizer = run_tokenizer(init.config, init.tokenizer);
  if (tokenizer == nullptr) return tokenizer;
  config.model.vocabulary = tokenizer->vocabulary_size();
  require(config.task.tokenizer.empty() ||
              config.task.tokenizer == init.config.task.tokenizer ||
              load_tokenizer(config.task.tokenizer)->file() == init.tokenizer,
          "task.tokenizer: that of the model that --init names is required, "
          "got ",
          config.task.tokenizer, ", which is another");
  return tokenizer;
}

// Null where the task's tokens are bytes or numbers. Sets model.vocabulary.
std::shared_ptr<const Tokenizer> tokenizer_of(
    const TrainOptions& options, const std::optional<Checkpoint>& init,
    Config& config, const std::atomic<bool>& stop) {
  if (options.resume) {
    const std::string file = load_run_tokenizer(options.out);
    if (!file.empty()) return run_tokenizer(config, file);
  }
  if (init && !init->tokenizer.empty()) return tokenizer_of(*init, config);
  return open_tokenizer(config, &stop);
}

std::string farewell(const TrainResult& result, const std::string& directory) {
  const std::string step = std::to_string(result.step);
  if (result.end == TrainEnd::kBefore) {
    return "done already, after step " + step +
           ": nothing to do; more steps by --set train.steps=N\n";
  }
  if (result.end == TrainEnd::kStopped) {
    return "stopped after step " + step +
           " and saved; go on with: reformer "
           "train --resume --out " +
           directory + "\n";
  }
  return "done after step " + step + " in " + duration(result.seconds) +
         "; the model is in " + directory + "\n";
}

// On one rank or, with a world, on all of them alike.
TrainEnd run_train(const TrainOptions& options, Config config,
                   at::Device device, World* world) {
  const auto& stop = stop_requested();
  auto busy = std::make_optional<World::Busy>(world);
  std::optional<Checkpoint> init;
  if (!options.init.empty()) init = load_best_model(options.init);
  const auto tokenizer = tokenizer_of(options, init, config, stop);
  const auto task = open_task(config, &stop, tokenizer);
  TrainScreen screen(*task, describe_run(config, *task, device, options.out));
  RunPlace place{options.out, options.resume, device, options.allow_other_data};
  if (init) place.parameters = std::move(init->parameters);
  place.world = world;
  busy.reset();
  const auto result = train(config, *task, place, stop, screen);
  screen.say(farewell(result, options.out));
  return result.end;
}

// Whether the run in --out is one that these words begin.
bool is_begun(const TrainOptions& options) {
  if (!holds_run(options.out)) return false;
  Config config = resolved_config(options);
  const Config begun = load_run_config(options.out);
  if (!load_run_tokenizer(options.out).empty()) {  // which has said how many
    config.model.vocabulary = begun.model.vocabulary;
  }
  return setting_facts(config) == setting_facts(begun);
}

// torchrun starts ranks once more with the same words when one of them failed:
// the run that they began goes on, and no other.
TrainOptions after_restart(TrainOptions options) {
  const std::string& attempt = launched_ranks().attempt;
  if (attempt.empty() || attempt == "0" || options.resume ||
      !is_begun(options)) {
    return options;
  }
  options.resume = true;
  options.config.name.clear();
  options.config.assignments.clear();
  options.init.clear();
  return options;
}

void require_out(const TrainOptions& options) {
  if (!options.out.empty()) return;
  const std::string& name = options.config.name;
  if (!options.resume || name.empty()) throw CLI::RequiredError("--out");
  throw CLI::ValidationError("--resume",
                             "--out names the run: --resume --out " + name);
}

void run_train(const TrainOptions& given) {
  stop_requested();
  const TrainOptions options = after_restart(given);
  if (!launched_ranks().first()) be_silent();
  const auto device = options.config.use_machine_of_rank();
  const Config config = resolved_config(options);
  TrainEnd end = TrainEnd::kSteps;
  run_as_rank(config, device, [&](World* world) {
    end = run_train(options, config, device, world);
  });
  if (end == TrainEnd::kStopped) throw Interrupted();
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand("train", "Train a model");
  const auto options = std::make_shared<TrainOptions>();
  options->config.add_to(command);
  command.add_option("--out", options->out, "folder of the run")
      ->check(not_empty())
      ->type_name("DIR");
  command
      .add_option("--data", options->data,
                  "a file, folder or archive, of translation also two files "
                  "with a comma between them: sets task.data")
      ->check(not_empty())
      ->type_name("PATH");
  command
      .add_option("--init", options->init,
                  "begin with the weights of this trained model, as "
                  "fine-tuning does; without a CONFIG with its config")
      ->check(not_empty())
      ->type_name("DIR");
  command.add_flag("--resume", options->resume,
                   "go on with the run in --out, with its own config");
  command.add_flag("--allow-other-data", options->allow_other_data,
                   "with --resume: also where the data have changed");
  command.callback([options, &action] {
    require_out(*options);
    action = [options] { run_train(*options); };
  });
}

}  // namespace reformer::cli
