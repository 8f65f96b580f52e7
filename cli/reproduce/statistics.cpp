#include "cli/reproduce/statistics.h"

#include <cassert>
#include <cmath>
#include <limits>

namespace reformer::cli {

Estimate estimate(const std::vector<double>& values) {
  assert(!values.empty());
  const auto count = double(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  if (values.size() < 2) {
    return {mean, std::numeric_limits<double>::quiet_NaN(), values.size()};
  }
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / (count - 1) / count), values.size()};
}

Estimate estimate_difference(const std::vector<double>& values,
                             const std::vector<double>& against) {
  assert(values.size() == against.size());
  std::vector<double> differences;
  for (size_t i = 0; i < values.size(); ++i) {
    differences.push_back(values[i] - against[i]);
  }
  return estimate(differences);
}

}  // namespace reformer::cli
