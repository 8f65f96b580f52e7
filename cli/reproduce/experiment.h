// Runs that differ in named settings and in the seed, all in one folder:
// trained one after the other, compared seed by seed.
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/reproduce/experiment_settings.h"
#include "cli/reproduce/statistics.h"

namespace reformer::cli {

// The runs of a series, told apart by what they set: {"lsh-4", {"lsh.rounds=4",
// …}}.
struct Variant {
  std::string name;
  std::vector<std::string> settings;
};

// What a run's metrics.jsonl says of the validation split, in the units that
// people compare.
struct ValidationCurve {
  std::string metric;                              // "bits per byte"
  std::vector<std::pair<int64_t, double>> points;  // step, value
};

ValidationCurve validation_curve(const std::string& folder);

// Of a run that is done. Throws Error where it has no point.
ValidationCurve finished_curve(const std::string& folder);

// The curves of a variant, one for each seed, all at the same steps.
struct Series {
  std::string name;
  std::vector<ValidationCurve> seeds;

  size_t points() const { return seeds.front().points.size(); }
  int64_t step(size_t point) const { return seeds.front().points[point].first; }
  std::vector<double> values(size_t point) const;  // one for each seed
  Estimate estimate(size_t point) const;
  Estimate difference(size_t point, const Series& against) const;
};

// DIR/VARIANT/seed-N holds a run. The first variant is what the others are
// compared with. The constructor throws Error for an impossible variant.
class Experiment {
 public:
  Experiment(std::string folder, ExperimentSettings settings,
             std::vector<Variant> variants);

  const std::string& folder() const { return folder_; }
  const ExperimentSettings& settings() const { return settings_; }
  const std::vector<Variant>& variants() const { return variants_; }

  // The config of a variant, with the first seed.
  Config config_of(const Variant& variant) const;

  // Trains what is not done yet: all variants with one seed, then with the
  // next, with a line on each. False when it was asked to stop: the run under
  // way has saved, and the next call goes on.
  bool train(at::Device device, const std::atomic<bool>& stop) const;

  // Of all variants, once all runs are done.
  std::vector<Series> series() const;

 private:
  std::string folder_of(const Variant& variant, int64_t seed) const;
  bool is_done(const std::string& folder) const;
  bool train_one(const Variant& variant, int64_t seed, at::Device device,
                 const std::atomic<bool>& stop) const;
  std::string row_of(const Variant& variant, int64_t seed) const;

  std::string folder_;
  ExperimentSettings settings_;
  std::vector<Variant> variants_;
};

}  // namespace reformer::cli
