// A training run as a person sees it.
#pragma once

#include <string>
#include <utility>

#include "cli/bench/timing.h"
#include "cli/screen/output.h"
#include "reformer/tasks/task.h"
#include "reformer/train/trainer.h"

namespace reformer::cli {

// Progress on stderr, evaluations on stdout. A run goes on when its reader has
// gone or nothing more can be written there.
class TrainScreen : public TrainObserver {
 public:
  // `summary`: what is said when the run begins.
  explicit TrainScreen(const Task& task, std::string summary = "")
      : task_(task), summary_(std::move(summary)) {}

  void began() override;
  void progress(const Progress& p) override;
  void evaluating(int64_t done, int64_t all) override;
  void evaluated(const Evaluation& e) override;
  void sampled(int64_t step, const std::string& text) override;
  void warned(const std::string& sentence) override;
  void say(const std::string& text);

 private:
  const Task& task_;
  const std::string summary_;
  Report report_{/*json=*/false};
  Stopwatch shown_;  // since a line of an evaluation
  bool closed_ = false;
};

}  // namespace reformer::cli
