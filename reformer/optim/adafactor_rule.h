// Adafactor's constants, and what its two kinds of parameters share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace reformer {

inline constexpr double kAdafactorEpsilon = 1e-30;       // added to g^2
inline constexpr double kAdafactorSmallestScale = 1e-3;  // for RMS(w) about 0
inline constexpr double kAdafactorLargestUpdate = 1;     // of RMS(y)

// What y is multiplied by, from the sums of the squares of w and y.
inline double adafactor_scale(double learning_rate, double sum_w, double sum_y,
                              int64_t elements) {
  const double n = static_cast<double>(elements);
  const double size = std::max(std::sqrt(sum_w / n), kAdafactorSmallestScale);
  const double rms = std::sqrt(sum_y / n) / kAdafactorLargestUpdate;
  return learning_rate * size / std::max(1.0, rms);
}

}  // namespace reformer
