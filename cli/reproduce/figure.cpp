#include "cli/reproduce/figure.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/process/machine.h"
#include "cli/process/stop_signal.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/base/printable.h"

namespace reformer::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const std::vector<Column> kColumns = {{16, "", "series"},
                                      {8, "", "seeds"},
                                      {10, "", "mean"},
                                      {12, "standard", "error"},
                                      {14, "against", "the first"},
                                      {12, "standard", "error"}};

std::string error_cell(double error) {
  return std::isfinite(error) ? fixed(error, 4) : "-";
}

Json point_row(const std::string& figure, const std::string& kind,
               const std::string& series, int64_t step) {
  Json row;
  row["figure"] = figure;
  row["row"] = kind;
  row["series"] = series;
  row["step"] = step;
  return row;
}

void add_estimate(Json& row, const Estimate& estimate) {
  row["mean"] = estimate.mean;
  row["standard_error"] = estimate.standard_error;
  row["seeds"] = estimate.count;
}

bool is_shown(const std::string& name, const std::vector<std::string>& shown) {
  return shown.empty() ||
         std::find(shown.begin(), shown.end(), name) != shown.end();
}

// `estimate_of(point)` for all points.
template <class EstimateOf>
Curve curve_of(const Series& series, int color, EstimateOf&& estimate_of) {
  Curve curve;
  curve.label = series.name;
  curve.color = color;
  for (size_t point = 0; point < series.points(); ++point) {
    const Estimate estimate = estimate_of(point);
    curve.points.emplace_back(double(series.step(point)), estimate.mean);
    if (estimate.count > 1) curve.errors.push_back(estimate.standard_error);
  }
  return curve;
}

std::string describe(const ExperimentSettings& settings) {
  const Config& config = settings.config;
  const bool synthetic =
      config.task.name == TaskKind::kText && config.task.data.empty();
  std::ostringstream text;
  text << config.model.layers << " layers " << config.model.d_model << "/"
       << config.model.d_ff << ", " << config.model.heads
       << " heads; sequences of " << config.train.length << ", "
       << config.train.batch << " a step, " << config.train.steps
       << " steps of " << config.train.optimizer << ", " << settings.seeds
       << (settings.seeds == 1 ? " seed" : " seeds") << "\n"
       << "data: "
       << (synthetic ? "synthetic text" : config.task.name.name() + " ")
       << config.task.data << "\n";
  return text.str();
}

std::string table_of(const std::vector<Series>& series) {
  const Series& first = series.front();
  const size_t last = first.points() - 1;
  std::string table = "\n" + printable(first.seeds.front().metric) +
                      " of the validation split after step " +
                      std::to_string(first.step(last)) + "; the first is " +
                      first.name + "\n" + table_head(kColumns);
  for (const auto& each : series) {
    const Estimate own = each.estimate(last);
    const Estimate difference = each.difference(last, first);
    const bool compared = &each != &first;
    table += table_row(
        kColumns, {each.name, std::to_string(own.count), fixed(own.mean, 4),
                   error_cell(own.standard_error),
                   compared ? signed_number(difference.mean, 4) : "",
                   compared ? error_cell(difference.standard_error) : ""});
  }
  return table;
}

std::vector<Curve> mean_curves(const std::vector<Series>& series,
                               const std::vector<std::string>& shown) {
  std::vector<Curve> curves;
  for (size_t i = 0; i < series.size(); ++i) {
    if (!is_shown(series[i].name, shown)) continue;
    curves.push_back(curve_of(series[i], int(i), [&](size_t point) {
      return series[i].estimate(point);
    }));
  }
  return curves;
}

std::vector<Curve> difference_curves(const std::vector<Series>& series,
                                     const std::vector<std::string>& shown) {
  std::vector<Curve> curves;
  for (size_t i = 1; i < series.size(); ++i) {
    if (!is_shown(series[i].name, shown)) continue;
    curves.push_back(curve_of(series[i], int(i), [&](size_t point) {
      return series[i].difference(point, series.front());
    }));
  }
  return curves;
}

}  // namespace

std::optional<std::vector<Series>> trained_series(const std::string& title,
                                                  const Experiment& experiment,
                                                  at::Device device) {
  print(title + " into " + experiment.folder() + ", " +
        describe_machine(device) + "\n" + describe(experiment.settings()));
  if (!experiment.train(device, stop_requested())) {
    print("stopped and saved; go on with the same command\n");
    throw Interrupted();
  }
  auto series = experiment.series();
  print(table_of(series));
  return series;
}

std::string json_lines_of(const std::string& figure,
                          const std::vector<Series>& series,
                          int64_t first_seed) {
  std::string lines;
  const auto add = [&](const Json& row) { lines += row.dump() + "\n"; };
  for (const auto& each : series) {
    for (size_t point = 0; point < each.points(); ++point) {
      const int64_t step = each.step(point);
      for (size_t i = 0; i < each.seeds.size(); ++i) {
        Json row = point_row(figure, "point", each.name, step);
        row["seed"] = first_seed + int64_t(i);
        row["metric"] = each.seeds[i].metric;
        row["value"] = each.seeds[i].points[point].second;
        add(row);
      }
      Json mean = point_row(figure, "mean", each.name, step);
      add_estimate(mean, each.estimate(point));
      add(mean);
      if (&each == &series.front()) continue;
      Json difference = point_row(figure, "difference", each.name, step);
      difference["against"] = series.front().name;
      add_estimate(difference, each.difference(point, series.front()));
      add(difference);
    }
  }
  return lines;
}

std::vector<Panel> comparison(const std::vector<Series>& series,
                              const std::string& title,
                              const std::vector<std::string>& shown) {
  const Series& first = series.front();
  const double settled_from = double(first.step(first.points() - 1)) / 5;
  Axes values;
  values.title = title;
  values.y_label = first.seeds.front().metric + ", validation";
  values.settled_from = settled_from;
  Axes differences = values;
  differences.title = "Difference to " + first.name + ", seed by seed";
  differences.y_label = "difference in " + first.seeds.front().metric;
  return {{values, mean_curves(series, shown)},
          {differences, difference_curves(series, shown)}};
}

void write_figure(const Figure& figure) {
  const fs::path folder(figure.folder);
  const fs::path numbers = folder / (figure.name + ".jsonl");
  write_file_atomically(numbers, figure.json_lines);
  print("numbers are in " + numbers.string() + "\n");
  const fs::path plot = folder / (figure.name + ".png");
  try {
    draw_plot(figure.script, plot.string(), figure.size);
    print("plot is in " + plot.string() + "\n");
  } catch (const Error& error) {  // the numbers are worth more than a plot
    print(std::string("no plot: ") + error.what() + "\n");
  }
}

}  // namespace reformer::cli
