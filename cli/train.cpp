#include "cli/train.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/config_options.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/stop_signal.h"
#include "reformer/core/config_json.h"
#include "reformer/core/errors.h"
#include "reformer/train/checkpoint.h"
#include "reformer/train/trainer.h"

namespace reformer::cli {
namespace {

struct TrainOptions {
  ConfigOptions config;
  std::string out;
  std::string data;
  bool resume = false;
};

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::max(0.0, seconds) + 0.5);
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", whole / 3600,
                  whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof(text), "%lld:%02lld", whole / 60, whole % 60);
  }
  return text;
}

// The run as a person sees it: progress on stderr, evaluations on stdout. A run
// goes on when its reader has gone.
class Screen : public TrainObserver {
 public:
  explicit Screen(const Task& task) : task_(task) {}

  void progress(const Progress& p) override {
    char text[160];
    std::snprintf(
        text, sizeof(text),
        "step %lld/%lld  loss %.4f  %.0f tokens/s  %s left  %.1f GiB  "
        "overflow %.1f%%",
        static_cast<long long>(p.step), static_cast<long long>(p.steps), p.loss,
        p.tokens_per_second, duration(p.seconds_left).c_str(),
        double(p.memory_bytes) / (1 << 30), p.overflow * 100);
    report_.progress(text);
  }

  void evaluated(const Evaluation& e) override {
    char text[160];
    std::snprintf(
        text, sizeof(text), "step %lld: validation %s %.4f, accuracy %.2f%%%s\n",
        static_cast<long long>(e.step), task_.metric_name().c_str(), e.metric,
        e.accuracy * 100, e.best ? ", the best so far" : "");
    say(text);
  }

  void warned(const std::string& sentence) override {
    report_.progress("note: " + sentence);
  }

  void say(const std::string& text) {
    if (closed_) return;
    try {
      report_.text(text);
    } catch (const OutputClosed&) {
      closed_ = true;
    }
  }

 private:
  const Task& task_;
  Report report_{/*json=*/false};
  bool closed_ = false;
};

// So that --resume finds it from any folder.
void make_absolute(std::string& file) {
  if (!file.empty() && file != "-") {
    file = std::filesystem::absolute(file).lexically_normal().string();
  }
}

// A resumed run is the one in its folder: its own config, and no other.
Config run_config(const TrainOptions& options) {
  if (!options.resume) return options.config.load();
  require(options.config.name.empty() && options.config.assignments.empty(),
          "--resume goes on with the config in ", options.out,
          ": give no CONFIG and no --set with it");
  return load_run_config(options.out);
}

Config resolved_config(const TrainOptions& options) {
  Config config = run_config(options);
  if (!options.data.empty()) config.task.data = options.data;
  make_absolute(config.task.data);
  make_absolute(config.task.validation);
  make_absolute(config.task.test);
  check(config);
  return config;
}

std::string farewell(const TrainResult& result, const std::string& directory) {
  const std::string step = std::to_string(result.step);
  if (result.end == TrainEnd::kStopped) {
    return "stopped after step " + step + " and saved; go on with: reformer "
           "train --resume --out " + directory + "\n";
  }
  return "done after step " + step + " in " + duration(result.seconds) +
         "; the model is in " + directory + "\n";
}

void run_train(const TrainOptions& options) {
  const auto& stop = stop_requested();
  options.config.use_machine();
  const Config config = resolved_config(options);
  const auto task = make_task(config);
  Screen screen(*task);
  screen.say(config_to_json(config) + "\n" + describe_machine() + "\n");
  const auto result =
      train(config, *task, options.out, options.resume, stop, screen);
  screen.say(farewell(result, options.out));
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand("train", "Train a model");
  const auto options = std::make_shared<TrainOptions>();
  options->config.add_to(command);
  command.add_option("--out", options->out, "folder of the run")
      ->required()
      ->type_name("DIR");
  command.add_option("--data", options->data, "the text: sets task.data")
      ->type_name("FILE");
  command.add_flag("--resume", options->resume,
                   "go on with the run in --out, with its own config");
  command.callback([options, &action] {
    action = [options] { run_train(*options); };
  });
}

}  // namespace reformer::cli
