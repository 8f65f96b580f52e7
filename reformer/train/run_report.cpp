#include "reformer/train/run_report.h"

#include <utility>

#include "reformer/base/clock.h"

namespace reformer {

RunReport::RunReport(std::string directory, World* world,
                     TrainObserver& observer)
    : directory_(std::move(directory)), world_(world), observer_(observer) {}

void RunReport::begin(const MetricsStart& start) {
  if (!first()) return;
  metrics_ = std::make_unique<MetricsWriter>(directory_, start);
  if (!metrics_->cut().empty()) observer_.warned(metrics_->cut());
}

void RunReport::begin_window() {
  window_ = {};
  if (world_ != nullptr) window_.rank_wait_before = world_->waited();
  window_.started = steady_seconds();
}

void RunReport::add(const StepStatistics& step, int64_t tokens) {
  gradient_norm_ = step.norm;
  window_.sums += step.sums;
  window_.tokens += tokens;
}

void RunReport::progress(Progress progress) {
  const double elapsed = steady_seconds() - window_.started;
  progress.loss = window_.sums.mean_loss();
  progress.accuracy = window_.sums.accuracy();
  progress.gradient_norm = gradient_norm_;
  progress.tokens_per_second = double(window_.tokens) / elapsed;
  if (world_ != nullptr) {
    progress.ranks = world_->ranks().size;
    progress.waited = (world_->waited() - window_.rank_wait_before) / elapsed;
  }
  write(progress, elapsed);
  observer_.progress(progress);
  begin_window();
}

void RunReport::write(const Progress& progress, double elapsed) {
  if (!first()) return;
  Scalars scalars{{"train/loss", progress.loss},
                  {"train/accuracy", progress.accuracy},
                  {"train/learning_rate", progress.learning_rate},
                  {"train/gradient_norm", progress.gradient_norm},
                  {"train/tokens_per_second", progress.tokens_per_second},
                  {"train/data_wait", window_.data_wait / elapsed},
                  {"train/lsh_overflow", progress.overflow}};
  if (world_ != nullptr) {
    scalars.emplace_back("train/rank_wait", progress.waited);
  }
  metrics_->write(progress.step, scalars);
}

void RunReport::evaluated(const Evaluation& evaluation, const Task& task) {
  if (!first()) return;
  const std::string prefix = kValidation;
  Scalars scalars{{prefix + "loss", evaluation.loss},
                  {prefix + "accuracy", evaluation.accuracy}};
  // Of tasks without a metric of their own it is the loss, which is there.
  const std::string metric = prefix + task.metric_name();
  if (metric != scalars.front().first) {
    scalars.emplace_back(metric, evaluation.metric);
  }
  metrics_->write(evaluation.step, scalars);
}

void RunReport::sampled(int64_t step, const std::string& text) {
  metrics_->write_text(step, "sample", text);
  observer_.sampled(step, text);
}

}  // namespace reformer
