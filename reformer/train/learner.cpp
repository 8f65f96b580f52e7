#include "reformer/train/learner.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "reformer/base/errors.h"
#include "reformer/device/device_memory.h"
#include "reformer/device/out_of_memory.h"
#include "reformer/model/memory_limits.h"
#include "reformer/model/prediction.h"
#include "reformer/optim/sharded_optimizer.h"
#include "reformer/train/evaluation.h"

namespace reformer {
namespace {

// A GPU's kernels over fewer elements than this take less time than the host
// needs to launch them, 20 us; at 4 TB/s, read and written.
constexpr int64_t kFewElements = int64_t{1} << 24;

// Kernels are loaded and libraries choose theirs when they first run.
constexpr int64_t kStepsBeforeCapture = 2;

// As they are counted in tokens a second: of translation the real ones of
// source and target.
int64_t tokens_of(const Batch& batch) {
  if (!batch.source.defined()) return batch.tokens.numel();
  const int64_t source = batch.source_mask.defined()
                             ? batch.source_mask.sum().item<int64_t>()
                             : batch.source.numel();
  return source + batch.loss_mask.sum().item<int64_t>();
}

// Without a mask where nothing is padding. Decided here, while the mask is on
// the host: a step that is captured would find it on the device, take other
// kernels than one that is computed as it comes, and round otherwise.
Batch with_needed_mask(Batch batch) {
  auto& mask = batch.source_mask;
  if (mask.defined() && mask.all().item<bool>()) mask.reset();
  return batch;
}

Batch rows_of(const Batch& batch, const Share& share) {
  const auto rows = [&](const at::Tensor& x) {
    return x.defined() ? x.narrow(0, share.begin, share.count()) : x;
  };
  return {rows(batch.tokens), rows(batch.loss_mask), rows(batch.distances),
          rows(batch.source), rows(batch.source_mask)};
}

std::unique_ptr<Optimizer> optimizer_of(
    const TrainConfig& train, const std::vector<Parameter>& parameters,
    World* world) {
  if (!train.shard_optimizer || world == nullptr || world->alone()) {
    return make_optimizer(train, parameters);
  }
  return std::make_unique<ShardedOptimizer>(train, parameters, world->sums());
}

// Each rank has something to do, but for the last batches of translation's.
void require_examples(const Config& config, const World* world) {
  require(world != nullptr || config.train.sequence_parallel == 1,
          "train.sequence_parallel: 1 is required of one rank, got ",
          config.train.sequence_parallel);
  if (world == nullptr || config.train.batch_tokens > 0) return;
  require(config.train.batch >= world->data_size(), "train.batch: at least ",
          world->data_size(),
          ", a sequence for each rank (each train.sequence_parallel of them), "
          "is required, got ",
          config.train.batch);
}

Placement placed(Placement placement, const TrainConfig& train, World* world) {
  if (train.device_memory > 0 && placement.device.is_cuda()) {
    limit_device_memory(placement.device, train.device_memory);
  }
  placement.blocks_on_host = train.offload;
  placement.sequence = world == nullptr ? nullptr : world->sequence();
  return placement;
}

// Before the model, whose parameters take their time to draw.
Placement possible(const Config& config, const Placement& placement,
                   World* world) {
  check(config);
  const Placement placed_so = placed(placement, config.train, world);
  require_memory_for_step(
      world == nullptr ? config : part_of_rank(config, world->ranks().size),
      placed_so);
  return placed_so;
}

}  // namespace

bool StepStatistics::finite() const {
  return std::isfinite(sums.loss) && std::isfinite(norm);
}

StepStatistics StepGradients::read() const {
  arrival.wait();
  const double* all = numbers.const_data_ptr<double>();
  return {reformer::read(numbers.narrow(0, 0, 3)), all[3], all[4]};
}

Learner::Learner(const Config& config, const Placement& placement, World* world)
    : train_(config.train),
      world_(world),
      others_(world == nullptr || world->alone() ? nullptr : &world->sums()),
      model_(make_model(config, possible(config, placement, world))),
      optimizer_(optimizer_of(config.train, model_->parameters(), world)) {
  require_examples(config, world);
  if (model_->placement().blocks_on_host) {
    offload_ = std::make_unique<ParameterOffload>(
        *model_, *optimizer_,
        /*waiting=*/train_.accumulate > 1 || train_.clip > 0, others_);
  } else if (others_ != nullptr) {
    gradient_sum_ = std::make_unique<GradientSum>(*model_, *others_);
  }
}

// Of each batch this rank's share.
std::vector<WeighedBatch> Learner::weighed(
    const std::vector<Batch>& batches) const {
  std::vector<WeighedBatch> result;
  int64_t first_example = 0;
  for (const auto& batch : batches) {
    const auto counted =
        std::max<int64_t>(1, batch.loss_mask.sum().item<int64_t>());
    const int64_t examples = batch.tokens.size(0);
    const Share share =
        world_ == nullptr
            ? Share{0, examples}
            : share_of(examples, world_->data_rank(), world_->data_size());
    result.push_back({with_needed_mask(rows_of(batch, share)),
                      1.0 / double(counted * int64_t(batches.size())),
                      first_example + share.begin});
    first_example += examples;
  }
  return result;
}

void Learner::initialize(const std::vector<NamedTensor>& parameters) {
  synchronize();
  load_parameters(*model_, parameters);
  if (offload_) offload_->forget_device();
}

void Learner::load(const std::vector<NamedTensor>& parameters,
                   const std::vector<NamedTensor>& optimizer) {
  initialize(parameters);
  if (optimizer.empty()) return;
  std::vector<NamedTensor> kept;
  for (const auto& [name, value] : optimizer) {
    const auto rows = optimizer_->kept_rows(name, value.sizes());
    if (rows.count > 0) kept.push_back({name, rows_in(value, rows)});
  }
  optimizer_->load_state(kept);
}

void Learner::share_parameters() {
  if (others_ == nullptr) return;
  synchronize();
  std::vector<at::Tensor> values;
  for (const auto& parameter : model_->parameters()) {
    values.push_back(parameter.value.detach());
  }
  others_->broadcast(values).wait();
  if (offload_) offload_->forget_device();
}

void Learner::synchronize() const {
  if (offload_) offload_->synchronize();
}

Pass Learner::pass(int64_t step) const {
  return {static_cast<uint64_t>(train_.seed), static_cast<uint64_t>(step),
          /*training=*/true, /*rounds=*/0};
}

// Leaves the gradients in the parameters; the numbers of StepGradients.
at::Tensor Learner::compute(const std::vector<WeighedBatch>& batches,
                            const Pass& pass) {
  if (gradient_sum_) {
    gradient_sum_->begin_step(static_cast<int64_t>(batches.size()));
  }
  return finish_gradients(own_gradients(batches, pass));
}

// Of this rank's examples; those of several ranks are on their way to be summed
// up. Returns the loss sums.
at::Tensor Learner::own_gradients(const std::vector<WeighedBatch>& batches,
                                  const Pass& pass) {
  model_->zero_gradients();
  if (offload_) {
    offload_->begin_step(
        learning_rate_at(train_, static_cast<int64_t>(pass.step), time_share_),
        static_cast<int64_t>(batches.size()), train_.clip);
  }
  at::Tensor sums;
  Pass of_batch = pass;
  for (const auto& [batch, scale, first_example] : batches) {
    if (offload_) offload_->begin_batch();
    if (gradient_sum_) gradient_sum_->begin_batch();
    of_batch.first_example = first_example;
    const auto part = sums_of(batch, of_batch, scale);
    sums = sums.defined() ? sums + part : part;
  }
  return sums;
}

// All ranks', clipped.
at::Tensor Learner::finish_gradients(const at::Tensor& sums) {
  const auto own_loss = sums.narrow(0, 0, 1).clone();
  if (gradient_sum_) {
    gradient_sum_->finish(sums);
  } else if (others_ != nullptr) {
    others_->sum({sums}).wait();
  }
  const auto norm = offload_
                        ? offload_->clip()
                        : clip_gradients(model_->parameters(), train_.clip);
  return at::cat({sums, norm.view(1), own_loss});
}

// Adds the gradients of a batch, of which this rank may have nothing.
at::Tensor Learner::sums_of(const Batch& batch, const Pass& pass,
                            double scale) {
  if (batch.tokens.size(0) > 0) {
    return model_->add_gradients(batch, pass, scale);
  }
  require(!offload_,
          "train.offload: false is required where a batch has fewer sentences "
          "than there are ranks; make train.batch_tokens larger");
  return at::zeros({3}, at::TensorOptions()
                            .dtype(at::kDouble)
                            .device(model_->placement().device));
}

Learner::Shape Learner::shape_of(const WeighedBatch& weighed) {
  Shape shape{{weighed.batch.tokens.sizes().vec()}, weighed.scale};
  if (weighed.batch.source.defined()) {
    shape.sizes.push_back(weighed.batch.source.sizes().vec());
  }
  return shape;
}

// Not where batches change from step to step: hardly one would fit.
// Nor where ranks exchange in the middle of a pass.
bool Learner::worth_capturing(const std::vector<WeighedBatch>& batches) const {
  const bool shares_sequences = model_->placement().sequence != nullptr;
  if (model_->placement().device.is_cpu() ||
      train_.cuda_graph == GraphUse::kOff || offload_ || shares_sequences ||
      batches.size() != 1 || !capturable_ || shape_of(batches[0]) != last_) {
    return false;
  }
  const int64_t elements =
      batches[0].batch.tokens.numel() * model_->config().model.d_model;
  return train_.cuda_graph == GraphUse::kOn || elements < kFewElements;
}

void Learner::capture(const WeighedBatch& like) {
  if (gradient_sum_) gradient_sum_->begin_captured_step();
  try {
    captured_ = std::make_unique<CapturedGradients>(
        *model_, like, [this](const WeighedBatch& batch, const Pass& pass) {
          // What other ranks have is no part of it.
          return others_ == nullptr ? compute({batch}, pass)
                                    : own_gradients({batch}, pass);
        });
  } catch (const std::exception& error) {
    // For want of memory steps are computed as they come. Nothing ran;
    // `compute` lets go of the gradients that were captured.
    if (train_.cuda_graph == GraphUse::kOn || !is_out_of_memory(error)) throw;
    capturable_ = false;
  }
}

at::Tensor Learner::replayed(const WeighedBatch& batch, const Pass& pass) {
  const auto found = captured_->replay(batch, pass);
  if (others_ == nullptr) return found;
  gradient_sum_->begin_captured_step();
  return finish_gradients(found);
}

StepGradients Learner::gradients(const std::vector<Batch>& batches,
                                 int64_t step) {
  const auto parts = weighed(batches);
  if (!captured_ && computed_ >= kStepsBeforeCapture &&
      worth_capturing(parts)) {
    capture(parts[0]);
  }
  const bool replay =
      captured_ && parts.size() == 1 && captured_->fits(parts[0]);
  const auto numbers =
      replay ? replayed(parts[0], pass(step)) : compute(parts, pass(step));
  if (!replay) ++computed_;
  last_ = shape_of(parts.back());
  StepGradients result;
  result.step = step;
  for (const auto& batch : batches) result.tokens += tokens_of(batch);
  if (numbers.device().is_cpu()) {
    result.numbers = numbers;
    return result;
  }
  result.numbers = at::empty(
      {5}, at::TensorOptions().dtype(at::kDouble).pinned_memory(true));
  result.numbers.copy_(numbers, /*non_blocking=*/true);
  result.arrival = DeviceEvent::now(numbers.device());
  return result;
}

double Learner::apply(int64_t step) {
  const double rate = learning_rate_at(train_, step, time_share_);
  if (offload_) {
    offload_->apply();
  } else {
    optimizer_->step(model_->parameters(), rate);
  }
  return rate;
}

}  // namespace reformer
