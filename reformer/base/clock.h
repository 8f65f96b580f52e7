// Time that has passed.
#pragma once

#include <chrono>

namespace reformer {

// Seconds since some moment, the same for all threads; never goes back.
inline double steady_seconds() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

}  // namespace reformer
