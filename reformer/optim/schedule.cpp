#include <algorithm>
#include <cmath>
#include <numbers>

#include "reformer/optim/optimizer.h"

namespace reformer {
namespace {

// 0 at the end of the warm-up, 1 at the last step.
double progress_after_warmup(const TrainConfig& config, int64_t step) {
  if (step <= config.warmup) return 0;
  if (step >= config.steps) return 1;
  return static_cast<double>(step - config.warmup) /
         static_cast<double>(config.steps - config.warmup);
}

}  // namespace

double learning_rate_at(const TrainConfig& config, int64_t step,
                        double time_share) {
  const double t = static_cast<double>(step);
  const double w = static_cast<double>(std::max<int64_t>(config.warmup, 1));
  const double warmed = config.learning_rate * std::min(1.0, t / w);
  if (config.schedule == ScheduleKind::kConstant) return warmed;
  if (config.schedule == ScheduleKind::kRsqrt)
    return warmed / std::sqrt(std::max(t, w));
  const double progress =
      std::max(progress_after_warmup(config, step), std::min(time_share, 1.0));
  const double turn = std::numbers::pi * progress;
  return warmed * (1 + std::cos(turn)) / 2;
}

}  // namespace reformer
