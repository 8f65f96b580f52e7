#include "cli/screen/train_screen.h"

#include <algorithm>
#include <cstdio>

#include "reformer/base/errors.h"

namespace reformer::cli {

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::max(0.0, seconds) + 0.5);
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", whole / 3600,
                  whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof(text), "%lld:%02lld", whole / 60, whole % 60);
  }
  return text;
}

void TrainScreen::progress(const Progress& p) {
  char text[160];
  std::snprintf(text, sizeof(text),
                "step %lld/%lld  loss %.4f  %.0f tokens/s  %s left  %.1f GiB  "
                "overflow %.1f%%",
                static_cast<long long>(p.step), static_cast<long long>(p.steps),
                p.loss, p.tokens_per_second, duration(p.seconds_left).c_str(),
                double(p.memory_bytes) / (1 << 30), p.overflow * 100);
  report_.progress(text);
}

void TrainScreen::evaluated(const Evaluation& e) {
  char text[160];
  std::snprintf(text, sizeof(text),
                "step %lld: validation %s %.4f, accuracy %.2f%%%s\n",
                static_cast<long long>(e.step), task_.metric_name().c_str(),
                e.metric, e.accuracy * 100, e.best ? ", the best so far" : "");
  say(text);
}

void TrainScreen::warned(const std::string& sentence) {
  report_.note(sentence);
}

void TrainScreen::say(const std::string& text) {
  if (closed_) return;
  try {
    report_.text(text);
  } catch (const OutputClosed&) {
    closed_ = true;
  } catch (const Error& error) {  // a terminal that was closed, a full disk
    closed_ = true;
    report_.note(error.what());
  }
}

}  // namespace reformer::cli
