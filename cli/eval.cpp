#include "cli/eval.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/config_options.h"
#include "cli/open_task.h"
#include "cli/output.h"
#include "reformer/train/checkpoint.h"
#include "reformer/train/trainer.h"

namespace reformer::cli {
namespace {

struct EvalOptions {
  std::string directory;
  std::string data;
  std::string split = "validation";
  std::vector<int64_t> rounds = {0};
  int64_t batches = 0;
  std::string device = "auto";
  int64_t threads = 0;
  bool json = false;
};

std::string table_row(const Task& task, int64_t rounds, const Evaluation& e) {
  char text[160];
  std::snprintf(text, sizeof(text), "rounds %lld: %s %.4f, accuracy %.2f%%\n",
                static_cast<long long>(rounds), task.metric_name().c_str(),
                e.metric, e.accuracy * 100);
  return text;
}

std::string json_row(const EvalOptions& options, const Task& task, int64_t step,
                     int64_t rounds, const Evaluation& e) {
  nlohmann::ordered_json row;
  row["directory"] = options.directory;
  row["split"] = options.split;
  row["step"] = step;
  row["rounds"] = rounds;
  row["loss"] = e.loss;
  row["accuracy"] = e.accuracy;
  row["metric"] = task.metric_name();
  row["value"] = e.metric;
  return row.dump() + "\n";
}

void run_eval(const EvalOptions& options) {
  const auto device = use_machine(options.device, options.threads);
  auto checkpoint = load_best_checkpoint(options.directory);
  if (!options.data.empty()) checkpoint.config.task.data = options.data;
  const auto task = open_task(checkpoint.config);
  LanguageModel model(
      checkpoint.config,
      placement_of_trained(device, checkpoint.config.train.precision));
  load_parameters(model, checkpoint.parameters);
  const Split split =
      options.split == "test" ? Split::kTest : Split::kValidation;
  Report report(options.json);
  report.text(options.directory + ", step " + std::to_string(checkpoint.step) +
              ", " + options.split + " split\n");
  for (const int64_t given : options.rounds) {
    const int64_t rounds = given > 0 ? given : checkpoint.config.lsh.rounds;
    report.progress("evaluating with rounds " + std::to_string(rounds));
    const auto e = evaluate(model, *task, split, options.batches, rounds);
    report.text(table_row(*task, rounds, e));
    report.json(json_row(options, *task, checkpoint.step, rounds, e));
  }
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand("eval", "Evaluate a trained model");
  const auto options = std::make_shared<EvalOptions>();
  command.add_option("DIR", options->directory, "folder of the run")
      ->required();
  command.add_option("--data", options->data, "other data: sets task.data")
      ->type_name("PATH");
  command.add_option("--split", options->split, "validation or test")
      ->check(one_of({"validation", "test"}))
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--rounds", options->rounds,
                  "hash rounds, free to differ from training's; 0: the same")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(0, 1024))
      ->type_name("N,...");
  command
      .add_option("--batches", options->batches,
                  "batches of the split to take; 0: all")
      ->check(whole_number(0, kMaxLength))
      ->type_name("N")
      ->capture_default_str();
  add_machine_options(command, options->device, options->threads);
  command.add_flag("--json", options->json, "one JSON object a line on stdout");
  command.callback(
      [options, &action] { action = [options] { run_eval(*options); }; });
}

}  // namespace reformer::cli
