// Means over seeds, and how far to trust them.
#pragma once

#include <cstddef>
#include <vector>

namespace reformer::cli {

struct Estimate {
  double mean = 0;
  double standard_error = 0;  // NaN of a single value: nobody knows
  size_t count = 0;
};

// Of at least one value. The standard error is the values' standard deviation
// (n - 1 degrees of freedom) over sqrt(n).
Estimate estimate(const std::vector<double>& values);

// Of values[i] - against[i], where both have as many: what two values of a seed
// have in common does not count as noise.
Estimate estimate_difference(const std::vector<double>& values,
                             const std::vector<double>& against);

}  // namespace reformer::cli
