// Median times of repeated measurements.
#pragma once

#include <c10/core/Event.h>

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

// Times on the stream of a device: how long the device took, however far the
// host was ahead. On the CPU, where nothing is ahead, the clock.
class Marks {
 public:
  explicit Marks(at::Device device) : device_(device) {}

  void mark();

  // Seconds between neighbouring marks; waits for the last one.
  std::vector<double> seconds();

 private:
  at::Device device_;
  std::vector<c10::Event> events_;
  Stopwatch watch_;
  std::vector<double> times_;
};

double median(std::vector<double> values);

// The median seconds of `work`, which is not warmed up here.
double median_seconds(int64_t repeats, const std::function<void()>& work);

}  // namespace reformer::cli
