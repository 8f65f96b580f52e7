#include "reformer/train/evaluation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>

#include "reformer/base/errors.h"

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

// Calls body(batch, pass) for each batch of the split, at most `batches`.
template <class Body>
void for_each_batch(const SequenceModel& model, const Task& task, Split split,
                    int64_t batches, int64_t rounds,
                    const EvaluationProgress& progress, const Body& body,
                    const World* world = nullptr) {
  const int64_t all = task.evaluation_batches(split);
  const int64_t used = batches > 0 ? std::min(batches, all) : all;
  const Pass pass{static_cast<uint64_t>(model.config().train.seed), /*step=*/0,
                  /*training=*/false, rounds};
  const int64_t ranks = world == nullptr ? 1 : world->data_size();
  const int64_t rank = world == nullptr ? 0 : world->data_rank();
  for (int64_t i = 0; i < used; i += ranks) {
    if (progress) progress(i, used);
    if (i + rank < used) body(task.evaluation_batch(split, i + rank), pass);
  }
}

// Positions of all rows as those of one: [1, n, ...] of [batch, length, ...].
at::Tensor picked(const at::Tensor& x, const at::Tensor& positions) {
  if (!x.defined()) return x;
  return x.flatten(0, 1).index_select(0, positions).unsqueeze(0);
}

LossSums sums_of_all(const LossSums& own, World& world) {
  const auto all = world.control().gathered(at::tensor(
      {own.loss, double(own.count), double(own.correct)}, at::kDouble));
  LossSums sums;
  for (int64_t rank = 0; rank < all.size(0); ++rank) sums += read(all[rank]);
  return sums;
}

constexpr std::size_t kOctaves = 63;  // of the positive numbers of int64

// Adds the sums of the tokens that are 2^i to 2^(i + 1) - 1 back to sums[i].
void add_octaves(const LanguageModel& model, const Batch& batch,
                 const Pass& pass, std::array<LossSums, kOctaves>& sums) {
  const at::NoGradGuard no_grad;
  const auto device = model.placement().device;
  const auto tokens = batch.tokens.to(device);
  const auto y = model.outputs(tokens, pass);
  const auto distances = batch.distances.masked_fill(~batch.loss_mask, 0);
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

}  // namespace

Evaluation evaluate(const SequenceModel& model, const Task& task, Split split,
                    int64_t batches, int64_t rounds,
                    const EvaluationProgress& progress, World* world) {
  LossSums sums;
  for_each_batch(
      model, task, split, batches, rounds, progress,
      [&](const Batch& batch, const Pass& pass) {
        sums += model.evaluate(batch, pass);
      },
      world);
  if (world != nullptr) sums = sums_of_all(sums, *world);
  Evaluation evaluation;
  evaluation.loss = sums.mean_loss();
  evaluation.accuracy = sums.accuracy();
  evaluation.metric = task.metric_of(evaluation.loss, split);
  return evaluation;
}

std::vector<DistanceSums> sums_by_distance(const LanguageModel& model,
                                           const Task& task, Split split,
                                           int64_t batches, int64_t rounds,
                                           const EvaluationProgress& progress) {
  std::array<LossSums, kOctaves> sums;
  for_each_batch(model, task, split, batches, rounds, progress,
                 [&](const Batch& batch, const Pass& pass) {
                   require(batch.distances.defined(),
                           "distances: this task knows none");
                   add_octaves(model, batch, pass, sums);
                 });
  std::vector<DistanceSums> found;
  for (std::size_t i = 0; i < kOctaves; ++i) {
    if (sums[i].count == 0) continue;
    found.push_back({int64_t{1} << i, int64_t{2} << i, sums[i]});
  }
  return found;
}

std::vector<double> losses_by_position(const LanguageModel& model,
                                       const Task& task, Split split,
                                       int64_t batches, int64_t rounds,
                                       const EvaluationProgress& progress) {
  at::Tensor sums;
  at::Tensor counts;
  for_each_batch(
      model, task, split, batches, rounds, progress,
      [&](const Batch& batch, const Pass& pass) {
        const auto losses =
            model.losses(batch.tokens, pass).to(at::kCPU, at::kDouble);
        const auto counted = batch.loss_mask.to(at::kDouble);
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
