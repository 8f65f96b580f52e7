// A training run as a person sees it.
#pragma once

#include <string>

#include "cli/screen/output.h"
#include "reformer/tasks/task.h"
#include "reformer/train/trainer.h"

namespace reformer::cli {

// Progress on stderr, evaluations on stdout. A run goes on when its reader has
// gone or nothing more can be written there.
class TrainScreen : public TrainObserver {
 public:
  explicit TrainScreen(const Task& task) : task_(task) {}

  void progress(const Progress& p) override;
  void evaluated(const Evaluation& e) override;
  void warned(const std::string& sentence) override;
  void say(const std::string& text);

 private:
  const Task& task_;
  Report report_{/*json=*/false};
  bool closed_ = false;
};

// 1:02:03, or 2:03.
std::string duration(double seconds);

}  // namespace reformer::cli
