#include "cli/bench/timing.h"

#include <algorithm>

namespace reformer::cli {

bool Repetitions::more() {
  constexpr int64_t kLeast = 3;
  constexpr double kSeconds = 1.0;
  const bool enough = wanted_ > 0
                          ? done_ == wanted_
                          : done_ >= kLeast && total_.seconds() >= kSeconds;
  ++done_;
  return !enough;
}

void Marks::mark() {
  if (device_.is_cpu()) return times_.push_back(watch_.seconds());
  events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  events_.back().record(
      c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
}

std::vector<double> Marks::seconds() {
  std::vector<double> between;
  if (!events_.empty()) events_.back().synchronize();
  for (size_t i = 1; i < events_.size(); ++i) {
    between.push_back(events_[i - 1].elapsedTime(events_[i]) / 1e3);
  }
  for (size_t i = 1; i < times_.size(); ++i) {
    between.push_back(times_[i] - times_[i - 1]);
  }
  return between;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

double median_seconds(int64_t repeats, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (Repetitions repetitions(repeats); repetitions.more();) {
    const Stopwatch watch;
    work();
    seconds.push_back(watch.seconds());
  }
  return median(seconds);
}

}  // namespace reformer::cli
