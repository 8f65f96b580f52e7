// Median times of repeated measurements.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace reformer::cli {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// How often to measure: `wanted` times, or, where that is 0, at least 3 times
// and until a second has passed.
//
//   for (Repetitions repetitions(0); repetitions.more();) …
class Repetitions {
 public:
  explicit Repetitions(int64_t wanted) : wanted_(wanted) {}
  bool more();

 private:
  int64_t wanted_;
  int64_t done_ = 0;
  Stopwatch total_;
};

double median(std::vector<double> values);

// The median seconds of `work`, which is not warmed up here.
double median_seconds(int64_t repeats, const std::function<void()>& work);

}  // namespace reformer::cli
