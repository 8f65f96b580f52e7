#include "cli/bench/measure_step.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>

#include <algorithm>
#include <vector>

#include "cli/bench/kernel_profile.h"
#include "cli/bench/timing.h"
#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/device/memory_meter.h"
#include "reformer/model/prediction.h"
#include "reformer/train/learner.h"

namespace reformer::cli {
namespace {

// Tokens of no meaning: what a step costs does not depend on them. Pairs of
// sentences are as long as they may be, so that nothing is padding.
Batch random_batch(const Config& config, uint64_t seed) {
  const auto random = at::detail::createCPUGenerator(seed);
  const std::vector<int64_t> shape = {batch_rows(config), config.train.length};
  const auto tokens = [&] {
    return at::randint(config.model.vocabulary, shape, random,
                       at::TensorOptions().dtype(at::kLong));
  };
  Batch batch{tokens(), at::ones(shape, at::kBool)};
  if (config.model.encoder_layers > 0) {
    batch.source = tokens();
    batch.source_mask = at::ones(shape, at::kBool);
  }
  return batch;
}

constexpr int64_t kRepeatsOfRanks = 5;  // they cannot each have enough

}  // namespace

StepMeasurement measure_step(const Config& config, at::Device device,
                             int64_t repeats, bool profile, World* world) {
  const MemoryMeter meter(device);
  Learner learner(config, placement_on(device, config.train.precision), world);
  if (world != nullptr && repeats == 0) repeats = kRepeatsOfRanks;
  int64_t step = 0;
  const auto take_step = [&] {
    ++step;
    std::vector<Batch> batches;
    for (int64_t i = 0; i < config.train.accumulate; ++i) {
      batches.push_back(random_batch(
          config, static_cast<uint64_t>(step * config.train.accumulate + i)));
    }
    const auto gradients = learner.gradients(batches, step);
    learner.apply(step);
    return gradients;
  };
  // As in training nobody waits for a GPU between steps, only at the end.
  const int64_t tokens = tokens_per_step(config);
  const int64_t steps =
      device.is_cpu() ? 1 : std::clamp<int64_t>((1 << 19) / tokens, 1, 10);
  int64_t taken = 0;
  const auto take_steps = [&] {
    taken += steps;
    StepGradients last;
    for (int64_t i = 0; i < steps; ++i) last = take_step();
    require(last.read().finite(), "the loss of a measured step is not finite");
    synchronize(device);
  };
  take_steps();
  StepMeasurement measured;
  taken = 0;
  const double waited = world == nullptr ? 0 : world->waited();
  const int64_t sent = world == nullptr ? 0 : world->sent_bytes();
  const Stopwatch watch;
  measured.step_s = median_seconds(repeats, take_steps) / double(steps);
  if (world != nullptr) {
    measured.ranks = world->ranks().size;
    measured.sent_bytes = (world->sent_bytes() - sent) / taken;
    measured.rank_wait = (world->waited() - waited) / watch.seconds();
  }
  for (const auto& [name, value] : learner.optimizer().state()) {
    measured.optimizer_bytes += static_cast<int64_t>(value.nbytes());
  }
  measured.tokens_per_s = double(tokens) / measured.step_s;
  measured.peak_bytes = meter.peak_bytes();
  measured.captured = learner.captured();
  if (profile)
    measured.profile = kernel_profile([&] {
      take_step();
      synchronize(device);
    });
  for (const auto& parameter : learner.model().parameters()) {
    measured.parameters += parameter.value.numel();
  }
  return measured;
}

}  // namespace reformer::cli
