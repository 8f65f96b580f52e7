#include "cli/reproduce/figure5.h"

#include <algorithm>
#include <memory>

#include "cli/options/config_options.h"
#include "cli/process/stop_signal.h"
#include "cli/reproduce/experiment.h"
#include "cli/reproduce/figure.h"
#include "cli/reproduce/step_costs.h"
#include "cli/screen/output.h"
#include "reformer/base/errors.h"

namespace reformer::cli {
namespace {

const std::vector<std::string> kVaried = {"model.layers"};
const char* const kDepth = "depth";
const char* const kSpeed = "speed";

// The lists of the command line, and of experiment.json.
const char* const kLayers = "layers";
const char* const kLengths = "lengths";
const char* const kRounds = "rounds";
const char* const kFullUpTo = "full_up_to";

std::vector<int64_t> layers_of(const ExperimentSettings& settings) {
  return settings.list(kLayers, settings.quick
                                    ? std::vector<int64_t>{1, 2, 4}
                                    : std::vector<int64_t>{3, 6, 12});
}

std::vector<int64_t> lengths_of(const ExperimentSettings& settings) {
  std::vector<int64_t> lengths;
  const int64_t least = settings.quick ? 128 : 1024;
  const int64_t most = settings.quick ? 4096 : 32768;
  for (int64_t n = least; n <= most; n *= 2) lengths.push_back(n);
  return settings.list(kLengths, lengths);
}

std::vector<Variant> variants_of(const ExperimentSettings& settings) {
  std::vector<Variant> variants;
  for (const int64_t layers : layers_of(settings)) {
    variants.push_back({std::to_string(layers) + "-layers",
                        {"model.layers=" + std::to_string(layers)}});
  }
  return variants;
}

std::vector<CostPoint> depth_points(const Experiment& experiment) {
  std::vector<CostPoint> points;
  for (const auto& variant : experiment.variants()) {
    points.push_back({kDepth, variant.name, experiment.config_of(variant)});
  }
  return points;
}

// As many tokens a step as in training, or as the longest sequence has.
int64_t tokens_of(const ExperimentSettings& settings) {
  int64_t tokens = settings.config.train.batch * settings.config.train.length;
  for (const int64_t length : lengths_of(settings)) {
    tokens = std::max(tokens, length);
  }
  return tokens;
}

Config config_of_length(const ExperimentSettings& settings, int64_t length) {
  const int64_t tokens = tokens_of(settings);
  require(tokens % length == 0, "--length ", length,
          ": a divisor of the tokens of a step, ", tokens, ", is required");
  Config config = settings.config;
  config.train.length = length;
  config.train.batch = tokens / length;
  config.lsh.n_buckets = 0;                          // by length
  config.model.positions = PositionKind::kSinusoid;  // any length
  return config;
}

std::vector<CostPoint> speed_points(const ExperimentSettings& settings) {
  std::vector<CostPoint> points;
  const int64_t full_up_to = settings.list(
      kFullUpTo, {settings.quick ? int64_t{4096} : kMaxLength})[0];
  for (const int64_t length : lengths_of(settings)) {
    Config config = config_of_length(settings, length);
    config.model.attention =
        AttentionKind::kFull;  // what people would use instead
    if (length <= full_up_to) points.push_back({kSpeed, "full", config});
    config.model.attention = AttentionKind::kLsh;
    for (const int64_t rounds : settings.list(kRounds, {1, 2, 4, 8})) {
      config.lsh.rounds = rounds;
      check(config);
      points.push_back({kSpeed, "lsh-" + std::to_string(rounds), config});
    }
  }
  return points;
}

double mebibytes(int64_t bytes) { return double(bytes) / (1 << 20); }

Curve& curve_named(std::vector<Curve>& curves, const std::string& label) {
  for (auto& curve : curves) {
    if (curve.label == label) return curve;
  }
  Curve curve;
  curve.label = label;
  curve.color = static_cast<int>(curves.size());
  curve.sparse = true;
  curves.push_back(curve);
  return curves.back();
}

// `value(cost)` over the length, a curve for each series.
template <class Value>
Panel panel_by_length(const std::vector<StepCost>& costs, const Axes& axes,
                      Value&& value) {
  Panel panel{axes, {}};
  panel.axes.x_label = "length";
  panel.axes.doubling_x = true;
  panel.axes.from_zero = true;
  for (const auto& cost : costs) {
    if (cost.row != kSpeed) continue;
    curve_named(panel.curves, cost.series)
        .points.emplace_back(double(cost.length), value(cost));
  }
  return panel;
}

Panel panel_by_depth(const std::vector<StepCost>& costs) {
  Panel panel{{"Peak memory of a step", "MiB", "layers"}, {}};
  panel.axes.doubling_x = true;
  panel.axes.from_zero = true;
  for (const auto& cost : costs) {
    if (cost.row != kDepth) continue;
    const auto layers = double(cost.layers);
    curve_named(panel.curves, "all")
        .points.emplace_back(layers, mebibytes(cost.peak_bytes));
    curve_named(panel.curves,
                "without parameters, gradients, optimizer, bucket ids")
        .points.emplace_back(layers, mebibytes(cost.rest_bytes));
  }
  return panel;
}

std::vector<Panel> panels_of(const std::vector<Series>& series,
                             const std::vector<StepCost>& costs,
                             int64_t tokens) {
  const auto time = [](const StepCost& cost) { return cost.step_s; };
  const auto memory = [](const StepCost& cost) {
    return mebibytes(cost.peak_bytes);
  };
  return {comparison(series, "Depth, LSH attention")[0],
          panel_by_length(costs,
                          {"A step on " + std::to_string(tokens) + " tokens",
                           "seconds a step"},
                          time),
          panel_by_depth(costs),
          panel_by_length(costs, {"Its peak memory", "MiB"}, memory)};
}

void reproduce_figure5(const ExperimentOptions& options) {
  const auto settings = settings_of(options, kVaried);
  const Experiment experiment(options.out, settings, variants_of(settings));
  auto points = depth_points(experiment);
  for (const auto& point : speed_points(settings)) points.push_back(point);
  const auto device = use_machine(options.device, options.threads);
  const auto series = trained_series("Figure 5", experiment, device);
  if (!series) return;
  const auto costs =
      measured_costs(options.out, points, device, stop_requested());
  if (!costs) {
    print("stopped; go on with the same command\n");
    throw Interrupted();
  }
  print(table_of(*costs));
  write_figure(
      {options.out,
       options.name,
       json_lines_of(options.name, *series, settings.config.train.seed) +
           json_lines_of(options.name, *costs),
       panels_script(panels_of(*series, *costs, tokens_of(settings)),
                     /*columns=*/2),
       {1800, 1300}});
}

void add_lists(CLI::App& app, ExperimentOptions& options) {
  const auto list = [&](const char* option, const char* key, const char* help,
                        int64_t most = kMaxLength) {
    options.list_ranges[key] = {1, most};
    app.add_option_function<std::vector<int64_t>>(
           option,
           [&options, key](const std::vector<int64_t>& values) {
             options.lists[key] = values;
           },
           help)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(whole_number(1, most))
        ->type_name("N,...");
  };
  list("--layers", kLayers, "depths to train [3,6,12; quick: 1,2,4]");
  list("--length", kLengths,
       "lengths to time [1024 to 32768; quick: 128 to 4096]");
  list("--rounds", kRounds, "hash rounds to time [1,2,4,8]", 1024);
  options.list_ranges[kFullUpTo] = {0, kMaxLength};
  app.add_option_function<int64_t>(
         "--full-up-to",
         [&options](int64_t length) { options.lists[kFullUpTo] = {length}; },
         "the longest sequence for full attention [any; quick: 4096]")
      ->check(whole_number(0, kMaxLength))
      ->take_last()
      ->type_name("N");
}

}  // namespace

void add_reproduce_figure5(CLI::App& reproduce, Action& action) {
  auto& app = *reproduce.add_subcommand(
      "figure5",
      "models of several depths, and the time of a step against length (as "
      "configs/figure5.json has it: meant for 10 minutes of an H200)");
  const auto options = std::make_shared<ExperimentOptions>("figure5");
  options->add_to(app);
  add_lists(app, *options);
  app.callback([options, &action] {
    action = [options] { reproduce_figure5(*options); };
  });
}

}  // namespace reformer::cli
