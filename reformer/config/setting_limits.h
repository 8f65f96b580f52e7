// What checks of settings share: sentences on a value, by its key.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "reformer/base/errors.h"

namespace reformer {

// Positions and sizes fit int32, in which the kernels keep them; products of
// two fit int64.
constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

inline void require_within(const char* key, int64_t value, int64_t least,
                           int64_t most = kLargest) {
  require(value >= least && value <= most, key, ": a whole number from ", least,
          " to ", most, " is required, got ", value);
}

// These are written so that NaN fails.
inline void require_fraction(const char* key, double value) {
  require(value >= 0 && value <= 1, key, ": from 0 to 1 is required, got ",
          value);
}

inline void require_below_one(const char* key, double value) {
  require(value >= 0 && value < 1, key,
          ": at least 0 and less than 1 is required, got ", value);
}

inline void require_not_negative(const char* key, double value) {
  require(value >= 0 && std::isfinite(value), key,
          ": a number of at least 0 is required, got ", value);
}

inline void require_positive(const char* key, double value) {
  require(value > 0 && std::isfinite(value), key,
          ": a number above 0 is required, got ", value);
}

// Stops at `enough`, before the product can overflow.
inline int64_t product_up_to(int64_t enough,
                             const std::vector<int64_t>& factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (product < enough) product *= factor;
  }
  return product;
}

}  // namespace reformer
