#include "cli/timing.h"

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
