#include "reformer/train/evaluation.h"

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

Evaluation evaluate(const LanguageModel& model, const Task& task, Split split,
                    int64_t batches, int64_t rounds) {
  const int64_t all = task.evaluation_batches(split);
  const int64_t used = batches > 0 ? std::min(batches, all) : all;
  const Pass pass{static_cast<uint64_t>(model.config().train.seed), /*step=*/0,
                  /*training=*/false, rounds};
  LossSums sums;
  for (int64_t i = 0; i < used; ++i) {
    const Batch batch = task.evaluation_batch(split, i);
    const auto part = model.evaluate(batch.symbols, batch.weights, pass);
    sums += part;
  }
  Evaluation evaluation;
  evaluation.loss = sums.mean_loss();
  evaluation.accuracy = sums.accuracy();
  evaluation.metric = task.metric_of(evaluation.loss);
  return evaluation;
}

}  // namespace reformer
