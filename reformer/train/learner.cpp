#include "reformer/train/learner.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>

namespace reformer {
namespace {

int64_t counted(const Batch& batch) {
  return std::max<int64_t>(1, batch.weights.sum().item<int64_t>());
}

}  // namespace

bool StepNumbers::finite() const {
  return std::isfinite(sums.loss) && std::isfinite(norm);
}

StepNumbers StepGradients::read() const {
  return {reformer::read(sums), norm.item<double>()};
}

Learner::Learner(const Config& config, const Placement& placement)
    : train_(config.train),
      model_(config, placement),
      optimizer_(make_optimizer(config.train, model_.parameters())) {}

Pass Learner::pass(int64_t step) const {
  return {static_cast<uint64_t>(train_.seed), static_cast<uint64_t>(step),
          /*training=*/true, /*rounds=*/0};
}

StepGradients Learner::gradients(const std::vector<Batch>& batches,
                                 int64_t step) {
  model_.zero_gradients();
  StepGradients result;
  result.step = step;
  for (const Batch& batch : batches) {
    const double scale = 1.0 / double(counted(batch) * int64_t(batches.size()));
    const auto part =
        model_.add_gradients(batch.symbols, batch.weights, pass(step), scale);
    result.sums = result.sums.defined() ? result.sums + part : part;
    result.tokens += batch.symbols.numel();
  }
  result.norm = clip_gradients_async(model_.parameters(), train_.clip);
  return result;
}

double Learner::apply(int64_t step) {
  const double rate = learning_rate_at(train_, step);
  optimizer_->step(model_.parameters(), rate);
  return rate;
}

}  // namespace reformer
