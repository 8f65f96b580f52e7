// Progress of something that takes a while: how much is done, what is left.
#pragma once

#include <cstdint>
#include <string>

#include "cli/bench/timing.h"
#include "cli/screen/output.h"

namespace reformer::cli {

// At most a line a second on stderr. Throws Interrupted when somebody wishes to
// stop.
class TimedProgress {
 public:
  TimedProgress(Report& report, std::string what)
      : report_(report), what_(std::move(what)) {}

  void operator()(int64_t done, int64_t all);

 private:
  Report& report_;
  std::string what_;
  Stopwatch begun_;
  double shown_ = -1;  // seconds
};

// 1:02:03, or 2:03.
std::string duration(double seconds);

}  // namespace reformer::cli
