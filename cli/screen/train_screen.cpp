#include "cli/screen/train_screen.h"

#include <cstdio>

#include "cli/screen/progress.h"
#include "reformer/base/errors.h"
#include "reformer/base/printable.h"

namespace reformer::cli {

void TrainScreen::began() {
  if (!summary_.empty()) say(summary_);
}

void TrainScreen::progress(const Progress& p) {
  char text[160];
  std::snprintf(text, sizeof(text),
                "step %lld/%lld  training %s %.4f  %.0f tokens/s  %s left  "
                "%.1f GiB",
                static_cast<long long>(p.step), static_cast<long long>(p.steps),
                task_.metric_name().c_str(), task_.metric_of(p.loss),
                p.tokens_per_second, duration(p.seconds_left).c_str(),
                double(p.memory_bytes) / (1 << 30));
  char ranks[64] = "";
  if (p.ranks > 1) {
    std::snprintf(ranks, sizeof(ranks), "  %lld ranks, %.0f%% waiting",
                  static_cast<long long>(p.ranks), 100 * p.waited);
  }
  report_.progress(std::string(text) + ranks);
}

void TrainScreen::evaluating(int64_t done, int64_t all) {
  if (done == 0) shown_ = Stopwatch();
  if (shown_.seconds() < 1) return;
  shown_ = Stopwatch();
  report_.progress("evaluating: " + std::to_string(done) + " of " +
                   std::to_string(all) + " batches");
}

void TrainScreen::sampled(int64_t step, const std::string& text) {
  say("step " + std::to_string(step) + ": the model writes\n" +
      printable_lines(text, "  | "));
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
