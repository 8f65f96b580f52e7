#include "cli/generate/prefill_screen.h"

#include <unistd.h>

#include <cstdio>

#include "cli/process/stop_signal.h"
#include "cli/screen/progress.h"

namespace reformer::cli {
namespace {

constexpr double kBetweenWords = 0.5;  // seconds; shorter prompts have none

}  // namespace

void PrefillScreen::show(double share) {
  if (shown_.seconds() < kBetweenWords || share >= 1) return;
  shown_ = Stopwatch();
  const double left = begin_.seconds() * (1 - share) / share;
  char text[48];
  std::snprintf(text, sizeof(text), ": %.0f%%, %s left", share * 100,
                duration(left).c_str());
  report_.progress("reading " + what_ + text);
}

PrefillWatch PrefillScreen::watch() {
  auto watch = silent_watch();
  if (isatty(STDERR_FILENO) == 1) {
    watch.progress = [this](double share) { show(share); };
  }
  return watch;
}

PrefillWatch silent_watch() { return {&stop_requested(), {}}; }

}  // namespace reformer::cli
