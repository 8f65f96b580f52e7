// What a run tells while it goes on: to whoever watches it, and of rank 0 to
// the metrics in its folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "reformer/io/metrics.h"
#include "reformer/tasks/task.h"
#include "reformer/train/learner.h"
#include "reformer/train/trainer.h"

namespace reformer {

class RunReport {
 public:
  // `world` and `observer` outlive it; null: there is one rank.
  RunReport(std::string directory, World* world, TrainObserver& observer);

  // Takes up the metrics of the folder, of rank 0.
  void begin(const MetricsStart& start);

  // Since when speed and losses are counted.
  void begin_window();

  // Of the window: what a step's numbers are, seconds that it waited for data,
  // seconds that are no training time.
  void add(const StepStatistics& step, int64_t tokens);
  void add_data_wait(double seconds) { window_.data_wait += seconds; }
  void leave_out(double seconds) { window_.started += seconds; }

  // Tells where the run stands, with what the window knows of it, and begins
  // the next one.
  void progress(Progress progress);

  void evaluated(const Evaluation& evaluation, const Task& task);
  void sampled(int64_t step, const std::string& text);

 private:
  struct Window {
    LossSums sums;
    int64_t tokens = 0;
    double started = 0;
    double data_wait = 0;         // seconds
    double rank_wait_before = 0;  // until its beginning
  };

  bool first() const { return world_ == nullptr || world_->first(); }
  void write(const Progress& progress, double elapsed);

  const std::string directory_;
  World* const world_;
  TrainObserver& observer_;
  std::unique_ptr<MetricsWriter> metrics_;
  Window window_;
  double gradient_norm_ = 0;
};

}  // namespace reformer
