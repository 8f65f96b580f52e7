#include "cli/commands/plot.h"

#include <filesystem>
#include <numbers>
#include <set>

#include "cli/draw/attention_plot.h"
#include "cli/draw/curves.h"
#include "cli/draw/gnuplot.h"
#include "cli/options/config_options.h"
#include "cli/screen/output.h"
#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/base/printable.h"
#include "reformer/config/config_json.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/metrics.h"

namespace reformer::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainingLoss = "train/loss";
constexpr const char* kValidationLoss = "validation/loss";

struct PlotOptions {
  std::vector<std::string> folders;
  std::string out;     // empty: plot.png in the first folder
  std::string metric;  // empty: both losses
  bool attention = false;
  AttentionPlot plot;
  int64_t threads = 0;  // 0: all that there are
};

struct LoggedRun {
  std::string folder;
  std::string label;
  std::vector<MetricsLine> lines;
};

// What losses are shown in: as the screen shows them where all runs agree.
struct Unit {
  std::string name = "loss (nats a token)";
  double nats = 1;
};

Unit unit_of(const std::string& folder) {
  const auto file = fs::path(folder) / "config.json";
  if (!fs::exists(file)) return {};
  const auto task =
      config_from_json(read_text(file.string()), file.string()).task;
  // A token of a tokenizer is some bytes, and no more is known of it here.
  if (task.name == TaskKind::kText && task.tokenizer.empty()) {
    return {"bits per byte", std::numbers::ln2};
  }
  if (task.name == TaskKind::kImages) {
    return {"bits per dim", std::numbers::ln2};
  }
  return {};
}

Unit unit_of(const std::vector<std::string>& folders) {
  const Unit first = unit_of(folders[0]);
  for (const auto& folder : folders) {
    if (unit_of(folder).name != first.name) return {};
  }
  return first;
}

bool all_differ(const std::vector<std::string>& names) {
  return std::set<std::string>(names.begin(), names.end()).size() ==
         names.size();
}

// The folders' own names, or where two share one the paths as given.
std::vector<std::string> labels_of(const std::vector<std::string>& folders) {
  std::vector<std::string> names;
  for (const auto& folder : folders) {
    names.push_back(fs::weakly_canonical(folder).filename().string());
  }
  return all_differ(names) ? names : folders;
}

// An exported model, or a checkpoint by itself.
void require_run(const std::string& folder) {
  const fs::path path(folder);
  require(fs::exists(path / kMetricsFile) || !fs::exists(path / kStateFile),
          folder,
          ": a model alone has no curves, its run has them; --attention draws "
          "what it attends to");
}

std::vector<LoggedRun> read_runs(const std::vector<std::string>& folders) {
  const auto labels = labels_of(folders);
  std::vector<LoggedRun> runs;
  for (size_t i = 0; i < folders.size(); ++i) {
    require_run(folders[i]);
    runs.push_back({folders[i], labels[i], read_metrics(folders[i])});
  }
  return runs;
}

std::vector<std::pair<double, double>> points_of(const LoggedRun& run,
                                                 const std::string& metric) {
  std::vector<std::pair<double, double>> points;
  for (const auto& [step, scalars] : run.lines) {
    for (const auto& [name, value] : scalars) {
      if (name == metric) points.emplace_back(double(step), value);
    }
  }
  return points;
}

std::string metric_names(const LoggedRun& run) {
  std::set<std::string> names;
  for (const auto& line : run.lines) {
    for (const auto& [name, value] : line.scalars) names.insert(name);
  }
  std::string text;
  for (const auto& name : names) {
    text += (text.empty() ? "" : ", ") + printable(name);
  }
  return text.empty() ? "nothing yet" : text;
}

Curve curve_of(const LoggedRun& run, const std::string& metric, int color) {
  Curve curve = {run.label,
                 color,
                 metric.starts_with("validation/"),
                 points_of(run, metric),
                 {}};
  require(!curve.points.empty(), run.folder, ": no ", printable(metric),
          " in metrics.jsonl; it has ", metric_names(run));
  return curve;
}

std::vector<Curve> curves_of(const std::vector<LoggedRun>& runs,
                             const std::string& metric) {
  std::vector<Curve> curves;
  for (const auto& run : runs) {
    const int color = int(&run - runs.data());
    const bool losses = metric.empty();
    curves.push_back(curve_of(run, losses ? kTrainingLoss : metric, color));
    if (!losses || points_of(run, kValidationLoss).empty()) continue;
    curves.push_back(curve_of(run, kValidationLoss, color));
    curves.back().label += ", validation";
  }
  return curves;
}

std::string plot_of(const PlotOptions& options, const char* name) {
  if (!options.out.empty()) return options.out;
  return (fs::path(options.folders[0]) / name).string();
}

void plot_losses(const PlotOptions& options) {
  const std::string out = plot_of(options, "plot.png");
  auto curves = curves_of(read_runs(options.folders), options.metric);
  const Unit unit =
      options.metric.empty() ? unit_of(options.folders) : Unit{options.metric};
  for (auto& curve : curves) {
    for (auto& point : curve.points) point.second /= unit.nats;
  }
  const std::string title = options.metric.empty() ? "Loss" : options.metric;
  draw_plot(curves_script(curves, {title, unit.name}), out);
  print("plot is in " + out + "\n");
}

void plot_attention(const PlotOptions& options) {
  require(options.folders.size() == 1, "plot --attention takes one run, got ",
          options.folders.size());
  use_machine("cpu", options.threads);
  const std::string out = plot_of(options, "attention.png");
  draw_plot(attention_script(options.folders[0], options.plot), out,
            {1500, 800});
  print("plot is in " + out + "\n");
}

void plot(const PlotOptions& options) {
  if (!options.out.empty()) check_plot_path(options.out);
  options.attention ? plot_attention(options) : plot_losses(options);
}

void add_attention_options(CLI::App& command, PlotOptions& options) {
  command.add_flag("--attention", options.attention,
                   "what an LSH layer attends to, instead of loss curves");
  const auto number = [&](const char* name, int64_t& value, const char* help) {
    command.add_option(name, value, help)
        ->check(whole_number(1, kMaxLength))
        ->take_last()
        ->type_name("N")
        ->capture_default_str();
  };
  command
      .add_option("--data", options.plot.data,
                  "with --attention: other data than the model's: sets "
                  "task.data")
      ->check(not_empty())
      ->take_last()
      ->type_name("PATH");
  number("--layer", options.plot.layer, "with --attention: which layer");
  number("--head", options.plot.head, "with --attention: which head");
  number("--round", options.plot.round,
         "with --attention: which hash round to sort by");
}

}  // namespace

void add_plot(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand(
      "plot", "Draw the loss curves of runs, or what a model attends to");
  const auto options = std::make_shared<PlotOptions>();
  command.add_option("DIR", options->folders, "folders of runs")
      ->required()
      ->check(not_empty())
      ->type_name("...");
  command
      .add_option("--out,--png", options->out,
                  "the plot, .png or .svg [plot.png or attention.png in the "
                  "first DIR]")
      ->check(not_empty())
      ->take_last()
      ->type_name("FILE");
  command
      .add_option("--metric", options->metric,
                  "any metric of metrics.jsonl [train/loss and "
                  "validation/loss]")
      ->check(not_empty())
      ->take_last()
      ->type_name("NAME");
  add_attention_options(command, *options);
  add_threads_option(command, options->threads);
  command.callback([options, &action] { action = [=] { plot(*options); }; });
}

}  // namespace reformer::cli
