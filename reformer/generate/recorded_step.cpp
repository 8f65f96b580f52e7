#include "reformer/generate/recorded_step.h"

#include <ATen/ops/empty.h>

#include <exception>

#include "reformer/device/device.h"
#include "reformer/device/out_of_memory.h"

namespace reformer {

RecordedStep::Recording::Recording(const at::Tensor& like, at::Device device,
                                   const Compute& compute)
    : symbols(
          at::empty(like.sizes(), at::TensorOptions(device).dtype(at::kLong))),
      graph(device) {
  graph.record([&] { logits = compute(symbols); });
}

void RecordedStep::record(const at::Tensor& like, const Compute& compute) {
  try {
    recording_ = std::make_unique<Recording>(like, device_, compute);
  } catch (const std::exception& error) {
    // For want of memory symbols are computed as they come. Nothing ran, so
    // that nothing is lost.
    if (!is_out_of_memory(error)) throw;
    failed_ = true;
  }
}

at::Tensor RecordedStep::take(const at::Tensor& symbols,
                              const Compute& compute) {
  if (!recording_ && computed_ && !failed_ && device_.is_cuda()) {
    record(symbols, compute);
  }
  if (!recording_) {
    const auto logits = compute(copied_to(symbols, device_));
    computed_ = true;
    return logits;
  }
  copy_into(recording_->symbols, symbols);
  recording_->graph.replay();
  return recording_->logits.clone();
}

}  // namespace reformer
