#include "cli/screen/open_task.h"

#include <cstdio>

#include "cli/bench/timing.h"
#include "cli/process/stop_signal.h"
#include "cli/screen/output.h"
#include "reformer/base/errors.h"
#include "reformer/tasks/task_tokenizer.h"

namespace reformer::cli {
namespace {

class DecodeScreen : public DecodeObserver {
 public:
  explicit DecodeScreen(const std::atomic<bool>* stop) : stop_(stop) {}

  // At most a line a second and a line for each percent.
  void decoding(const std::string& source, int64_t done,
                int64_t size) override {
    if (stop_ != nullptr && *stop_) {
      report_.note("stopped while decoding " + source +
                   "; the next start decodes it from its beginning");
      throw Interrupted();
    }
    const int64_t percent = 100 * done / size;
    if (percent == shown_ || (shown_ >= 0 && since_.seconds() < 1)) return;
    shown_ = percent;
    since_ = Stopwatch();
    char text[64];
    std::snprintf(text, sizeof(text), ", %lld%% of %.1f MB",
                  static_cast<long long>(percent), double(size) / 1e6);
    report_.progress("decoding " + source + text);
  }

  void warned(const std::string& sentence) override { report_.note(sentence); }
  void began(const std::string& what) override { report_.progress(what); }

 private:
  const std::atomic<bool>* stop_;
  Report report_{/*json=*/false};
  int64_t shown_ = -1;  // percent
  Stopwatch since_;
};

}  // namespace

std::unique_ptr<Task> open_task(const Config& config,
                                const std::atomic<bool>* stop,
                                std::shared_ptr<const Tokenizer> tokenizer) {
  DecodeScreen screen(stop);
  return make_task(config, screen, std::move(tokenizer));
}

std::shared_ptr<const Tokenizer> open_tokenizer(Config& config,
                                                const std::atomic<bool>* stop) {
  DecodeScreen screen(stop);
  const int64_t wanted = config.model.vocabulary;
  auto tokenizer = task_tokenizer(config, screen);
  if (tokenizer != nullptr && config.model.vocabulary != wanted) {
    screen.warned("model.vocabulary is " +
                  std::to_string(config.model.vocabulary) +
                  ", the pieces of the tokenizer");
  }
  return tokenizer;
}

}  // namespace reformer::cli
