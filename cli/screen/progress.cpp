#include "cli/screen/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/process/stop_signal.h"

namespace reformer::cli {

std::string duration(double seconds) {
  const auto whole = std::llround(std::max(0.0, seconds));
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", whole / 3600,
                  whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof(text), "%lld:%02lld", whole / 60, whole % 60);
  }
  return text;
}

void TimedProgress::operator()(int64_t done, int64_t all) {
  end_if_stopped();
  const double seconds = begun_.seconds();
  if (shown_ >= 0 && seconds - shown_ < 1) return;
  shown_ = seconds;
  std::string text =
      what_ + ": " + std::to_string(done) + " of " + std::to_string(all);
  if (done > 0) {
    const double left = seconds / double(done) * double(all - done);
    text += ", " + duration(left) + " left";
  }
  report_.progress(text);
}

}  // namespace reformer::cli
