#include "cli/reproduce/experiment.h"

#include <filesystem>

#include "cli/options/config_options.h"
#include "cli/reproduce/synthetic_text.h"
#include "cli/reproduce/train_or_resume.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/base/printable.h"
#include "reformer/io/metrics.h"

namespace reformer::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSyntheticBytes = 1 << 20;

const std::string kPrefix = "validation/";

// A task has its own units, or speaks of the loss alone.
std::string metric_in(const std::vector<MetricsLine>& lines) {
  for (const auto& line : lines) {
    for (const auto& [name, value] : line.scalars) {
      if (name.starts_with(kPrefix) && name != kPrefix + "loss" &&
          name != kPrefix + "accuracy") {
        return name.substr(kPrefix.size());
      }
    }
  }
  return "loss";
}

// A text for those who have none, always the same one.
std::string synthetic_text_in(const std::string& folder) {
  const auto path = fs::absolute(fs::path(folder) / "synthetic.txt");
  if (!fs::exists(path)) {
    write_file_atomically(path, synthetic_text(kSyntheticBytes, /*seed=*/1));
    print("no --data: a synthetic text of 1 MiB, " + path.string() + "\n");
  }
  return path.lexically_normal().string();
}

std::vector<int64_t> steps_of(const ValidationCurve& curve) {
  std::vector<int64_t> steps;
  for (const auto& point : curve.points) steps.push_back(point.first);
  return steps;
}

bool comparable(const ValidationCurve& one, const ValidationCurve& other) {
  return one.metric == other.metric && steps_of(one) == steps_of(other);
}

}  // namespace

ValidationCurve validation_curve(const std::string& folder) {
  const auto lines = read_metrics(folder);
  ValidationCurve curve{metric_in(lines), {}};
  for (const auto& [step, scalars] : lines) {
    for (const auto& [name, value] : scalars) {
      if (name == kPrefix + curve.metric)
        curve.points.emplace_back(step, value);
    }
  }
  return curve;
}

ValidationCurve finished_curve(const std::string& folder) {
  auto curve = validation_curve(folder);
  require(!curve.points.empty(), folder,
          "/metrics.jsonl: holds no evaluation, though the run is done; remove "
          "the folder to train it again");
  return curve;
}

std::vector<double> Series::values(size_t point) const {
  std::vector<double> values;
  for (const auto& curve : seeds) values.push_back(curve.points[point].second);
  return values;
}

Estimate Series::estimate(size_t point) const {
  return cli::estimate(values(point));
}

Estimate Series::difference(size_t point, const Series& against) const {
  return estimate_difference(values(point), against.values(point));
}

Experiment::Experiment(std::string folder, ExperimentSettings settings,
                       std::vector<Variant> variants)
    : folder_(std::move(folder)),
      settings_(std::move(settings)),
      variants_(std::move(variants)) {
  for (const auto& variant : variants_) check(config_of(variant));
}

Config Experiment::config_of(const Variant& variant) const {
  Config config = settings_.config;
  set_values(config, variant.settings);
  return config;
}

std::string Experiment::folder_of(const Variant& variant, int64_t seed) const {
  return (fs::path(folder_) / variant.name / ("seed-" + std::to_string(seed)))
      .string();
}

// By its metrics alone, which are all that a figure needs of a run: whoever
// has removed its checkpoints, or left them on another machine, still draws it.
bool Experiment::is_done(const std::string& folder) const {
  if (!fs::exists(fs::path(folder) / "metrics.jsonl")) return false;
  const auto curve = validation_curve(folder);
  return !curve.points.empty() &&
         curve.points.back().first >= settings_.config.train.steps;
}

bool Experiment::train_one(const Variant& variant, int64_t seed,
                           at::Device device,
                           const std::atomic<bool>& stop) const {
  const std::string folder = folder_of(variant, seed);
  if (is_done(folder)) return true;
  if (stop) return false;
  Config config = config_of(variant);
  config.train.seed = seed;
  if (config.task.name == TaskKind::kText && config.task.data.empty()) {
    config.task.data = synthetic_text_in(folder_);
  }
  return train_or_resume({"training " + variant.name, folder, config}, device,
                         stop);
}

// "lsh-4, seed 0: bits per byte 2.1234, +0.0123 against full".
std::string Experiment::row_of(const Variant& variant, int64_t seed) const {
  const auto curve = finished_curve(folder_of(variant, seed));
  const double value = curve.points.back().second;
  std::string row = variant.name + ", seed " + std::to_string(seed) + ": " +
                    printable(curve.metric) + " " + fixed(value, 4);
  const Variant& first = variants_.front();
  if (&variant != &first) {
    const auto against = finished_curve(folder_of(first, seed));
    row += ", " + signed_number(value - against.points.back().second, 4) +
           " against " + first.name;
  }
  return row + "\n";
}

bool Experiment::train(at::Device device, const std::atomic<bool>& stop) const {
  const int64_t first = settings_.config.train.seed;
  for (int64_t seed = first; seed < first + settings_.seeds; ++seed) {
    for (const auto& variant : variants_) {
      if (!train_one(variant, seed, device, stop)) return false;
      print(row_of(variant, seed));
    }
  }
  return true;
}

std::vector<Series> Experiment::series() const {
  const int64_t first = settings_.config.train.seed;
  std::vector<Series> all;
  for (const auto& variant : variants_) {
    all.push_back({variant.name, {}});
    for (int64_t seed = first; seed < first + settings_.seeds; ++seed) {
      const std::string folder = folder_of(variant, seed);
      all.back().seeds.push_back(finished_curve(folder));
      require(comparable(all.back().seeds.back(), all.front().seeds.front()),
              folder,
              "/metrics.jsonl: was evaluated at other steps than the other "
              "runs, or by another metric; remove the folder to train it "
              "again");
    }
  }
  return all;
}

}  // namespace reformer::cli
