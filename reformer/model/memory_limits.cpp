#include "reformer/model/memory_limits.h"

#include <c10/core/ScalarType.h>

#include <algorithm>

#include "reformer/base/errors.h"
#include "reformer/base/machine_memory.h"
#include "reformer/device/device_memory.h"
#include "reformer/model/prediction.h"

namespace reformer {
namespace {

double memory_of(c10::Device device) {
  return double(device.is_cpu() ? machine_memory()
                                : device_memory_bytes(device));
}

void require_memory(double needed, c10::Device device, const char* key,
                    const std::string& what, const char* remedy) {
  const double there = memory_of(device);
  require(needed <= there, key, ": ", what, " need ", gibibytes(needed),
          " at least, and there are ", gibibytes(there), " of memory on this ",
          device.is_cpu() ? "machine" : "GPU", "; ", remedy);
}

// `bytes` of each parameter, where blocks live and where the rest does.
void require_parameters(const Config& config, const Placement& placement,
                        double bytes, const char* what) {
  const auto counts = count_parameters(config);
  const double blocks = double(counts.attention + counts.feed_forward);
  const double all = double(counts.total());
  const c10::Device home =
      placement.blocks_on_host ? c10::Device(c10::kCPU) : placement.device;
  require_memory(bytes * (placement.blocks_on_host ? blocks : all), home,
                 "model", std::to_string(counts.total()) + what,
                 "fewer model.layers, or less of model.d_model, model.d_ff or "
                 "model.vocabulary, are required");
}

}  // namespace

void require_memory_for_parameters(const Config& config,
                                   const Placement& placement) {
  const auto bytes = std::min(c10::elementSize(placement.type),
                              c10::elementSize(placement.matrices));
  require_parameters(config, placement, double(bytes), " parameters");
}

void require_memory_for_step(const Config& config, const Placement& placement) {
  const auto bytes = c10::elementSize(placement.type);
  const auto& train = config.train;
  // Gradients of blocks on the host stay there only where they wait for others.
  const bool leave =
      placement.blocks_on_host && train.accumulate == 1 && train.clip == 0;
  require_parameters(config, placement, (leave ? 1.0 : 2.0) * double(bytes),
                     leave ? " parameters" : " parameters and their gradients");
  require_memory(
      2.0 * double(bytes) * double(batch_rows(config)) * double(train.length) *
          double(config.model.d_model),
      placement.device,
      batch_rows(config) == train.batch ? "train.batch" : "train.batch_tokens",
      std::to_string(batch_rows(config)) +
          " sequences of train.length = " + std::to_string(train.length),
      "shorter or fewer sequences are required (train.accumulate adds up "
      "batches)");
}

void require_memory_for_batch(const TrainConfig& train) {
  constexpr double kBytes = 9;  // a token, and whether it counts
  require_memory(kBytes * double(train.batch) * double(train.length), c10::kCPU,
                 "train.batch",
                 std::to_string(train.batch) + " sequences of train.length = " +
                     std::to_string(train.length),
                 "shorter or fewer sequences are required (train.accumulate "
                 "adds up batches)");
}

}  // namespace reformer
