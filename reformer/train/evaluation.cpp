#include "reformer/train/evaluation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <array>

#include "reformer/base/errors.h"
#include "reformer/train/split_batches.h"

namespace reformer {

void load_parameters(SequenceModel& model,
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

// Positions of all rows as those of one: [1, n, ...] of [batch, length, ...].
at::Tensor picked(const at::Tensor& x, const at::Tensor& positions) {
  if (!x.defined()) return x;
  return x.flatten(0, 1).index_select(0, positions).unsqueeze(0);
}

// [3] float64, which `read` reads.
at::Tensor numbers_of(const LossSums& sums) {
  return at::tensor({sums.loss, double(sums.count), double(sums.correct)},
                    at::kDouble);
}

constexpr std::size_t kOctaves = 63;  // of the positive numbers of int64
using Octaves = std::array<LossSums, kOctaves>;

// Adds the sums of the tokens that are 2^i to 2^(i + 1) - 1 back to sums[i].
void add_octaves(const LanguageModel& model, const Batch& batch,
                 const Pass& pass, Octaves& sums) {
  const at::NoGradGuard no_grad;
  const auto device = model.placement().device;
  const Share own = own_positions(model, batch.tokens.size(1));
  const auto part = [&](const at::Tensor& x) {
    return x.narrow(1, own.begin, own.count());
  };
  const auto tokens = part(batch.tokens).to(device);
  const auto y = model.outputs(batch.tokens, pass);
  const auto distances = part(batch.distances.masked_fill(~batch.loss_mask, 0));
  const int64_t farthest = distances.max().item<int64_t>();
  for (std::size_t i = 0; i < kOctaves && farthest >> i > 0; ++i) {
    const auto within = distances.bitwise_right_shift(int64_t(i)).eq(1);
    const auto positions =
        at::nonzero(within.flatten()).flatten().to(device);  // [n]
    if (positions.size(0) == 0) continue;
    const auto wanted = picked(tokens, positions);
    sums[i] += read(
        model.head().loss({picked(y.x1, positions), picked(y.x2, positions)},
                          wanted, at::ones_like(wanted, at::kBool)));
  }
}

Octaves sum_of_ranks(const Octaves& own, World* world) {
  std::vector<at::Tensor> rows;
  for (const auto& sums : own) rows.push_back(numbers_of(sums));
  const auto all = sum_of_ranks(at::stack(rows), world);  // [kOctaves, 3]
  Octaves sums;
  for (std::size_t i = 0; i < kOctaves; ++i) sums[i] = read(all[int64_t(i)]);
  return sums;
}

}  // namespace

Evaluation evaluate(const SequenceModel& model, const Task& task,
                    const EvaluatedSplit& of) {
  LossSums own;
  for_each_batch(model, task, of, /*spread=*/false,
                 [&](const Batch& batch, const Pass& pass) {
                   own += model.evaluate(batch, pass);
                 });
  const auto sums = read(sum_of_ranks(numbers_of(own), of.world));
  Evaluation evaluation;
  evaluation.loss = sums.mean_loss();
  evaluation.accuracy = sums.accuracy();
  evaluation.metric = task.metric_of(evaluation.loss, of.split);
  return evaluation;
}

std::vector<DistanceSums> sums_by_distance(const LanguageModel& model,
                                           const Task& task,
                                           const EvaluatedSplit& of) {
  Octaves own;
  for_each_batch(model, task, of, /*spread=*/false,
                 [&](const Batch& batch, const Pass& pass) {
                   require(batch.distances.defined(),
                           "distances: this task knows none");
                   add_octaves(model, batch, pass, own);
                 });
  const auto sums = sum_of_ranks(own, of.world);
  std::vector<DistanceSums> found;
  for (std::size_t i = 0; i < kOctaves; ++i) {
    if (sums[i].count == 0) continue;
    found.push_back({int64_t{1} << i, int64_t{2} << i, sums[i]});
  }
  return found;
}

std::vector<double> losses_by_position(const LanguageModel& model,
                                       const Task& task,
                                       const EvaluatedSplit& of) {
  const int64_t length = task.evaluation_batch(of.split, 0).tokens.size(1);
  const Share mine = own_positions(model, length);
  auto own = at::zeros({2, length}, at::kDouble);  // losses, how many
  for_each_batch(model, task, of, /*spread=*/false,
                 [&](const Batch& batch, const Pass& pass) {
                   const auto counted = batch.loss_mask.to(at::kDouble);
                   own[0] +=
                       (own_losses(model, batch.tokens, pass) * counted).sum(0);
                   own[1].narrow(0, mine.begin, mine.count()) +=
                       counted.narrow(1, mine.begin, mine.count()).sum(0);
                 });
  const auto sums = sum_of_ranks(own, of.world);
  const auto wrong =
      sums[1].gt(0).logical_and(sums[0].isfinite().logical_not());
  require_of_all(!wrong.any().item<bool>(),
                 "the loss is not finite: the model has diverged");
  const auto means = (sums[0] / sums[1]).contiguous();
  const double* begin = means.const_data_ptr<double>();
  return {begin, begin + means.numel()};
}

}  // namespace reformer
