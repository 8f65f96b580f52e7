#include "reformer/train/evaluation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "reformer/core/errors.h"

namespace reformer {

void load_parameters(LanguageModel& model,
                     const std::vector<NamedTensor>& parameters) {
  auto& own = model.parameters();
  require(own.size() == parameters.size(), "checkpoint: this config has ",
          own.size(), " parameters, the file ", parameters.size());
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < own.size(); ++i) {
    require(own[i].name == parameters[i].name &&
                own[i].value.sizes() == parameters[i].value.sizes(),
            "checkpoint: this config has parameter ", own[i].name, " of sizes ",
            own[i].value.sizes(), ", the file ", parameters[i].name,
            " of sizes ", parameters[i].value.sizes());
    own[i].value.copy_(parameters[i].value);
  }
}

namespace {

// Calls body(batch, pass) for each batch of the split, at most `batches`, until
// `stop`: false where it came before the last one.
template <class Body>
bool for_each_batch(const std::atomic<bool>& stop, const LanguageModel& model,
                    const Task& task, Split split, int64_t batches,
                    int64_t rounds, const Body& body) {
  const int64_t all = task.evaluation_batches(split);
  const int64_t used = batches > 0 ? std::min(batches, all) : all;
  const Pass pass{static_cast<uint64_t>(model.config().train.seed), /*step=*/0,
                  /*training=*/false, rounds};
  for (int64_t i = 0; i < used; ++i) {
    if (stop) return false;
    body(task.evaluation_batch(split, i), pass);
  }
  return true;
}

const std::atomic<bool> kNever{false};

}  // namespace

Evaluation evaluate(const LanguageModel& model, const Task& task, Split split,
                    int64_t batches, int64_t rounds) {
  return *evaluate_until(kNever, model, task, split, batches, rounds);
}

std::optional<Evaluation> evaluate_until(const std::atomic<bool>& stop,
                                         const LanguageModel& model,
                                         const Task& task, Split split,
                                         int64_t batches, int64_t rounds) {
  LossSums sums;
  const bool whole = for_each_batch(stop, model, task, split, batches, rounds,
                                    [&](const Batch& batch, const Pass& pass) {
                                      sums += model.evaluate(
                                          batch.symbols, batch.weights, pass);
                                    });
  if (!whole) return {};
  Evaluation evaluation;
  evaluation.loss = sums.mean_loss();
  evaluation.accuracy = sums.accuracy();
  evaluation.metric = task.metric_of(evaluation.loss);
  return evaluation;
}

std::vector<double> losses_by_position(const LanguageModel& model,
                                       const Task& task, Split split,
                                       int64_t batches, int64_t rounds) {
  at::Tensor sums;
  at::Tensor counts;
  for_each_batch(
      kNever, model, task, split, batches, rounds,
      [&](const Batch& batch, const Pass& pass) {
        const auto losses =
            model.losses(batch.symbols, pass).to(at::kCPU, at::kDouble);
        const auto counted = batch.weights.to(at::kDouble);
        const auto part = (losses * counted).sum(0);
        sums = sums.defined() ? sums + part : part;
        counts = counts.defined() ? counts + counted.sum(0) : counted.sum(0);
      });
  const auto wrong = counts.gt(0).logical_and(sums.isfinite().logical_not());
  require(!wrong.any().item<bool>(),
          "the loss is not finite: the model has diverged");
  const auto means = (sums / counts).contiguous();
  const double* begin = means.const_data_ptr<double>();
  return {begin, begin + means.numel()};
}

}  // namespace reformer
