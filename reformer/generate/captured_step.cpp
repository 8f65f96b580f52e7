#include "reformer/generate/captured_step.h"

#include <ATen/ops/empty.h>

#include <exception>

#include "reformer/device/device.h"
#include "reformer/device/out_of_memory.h"

namespace reformer {

CapturedStep::Capture::Capture(const at::Tensor& like, at::Device device,
                               const Compute& compute)
    : tokens(
          at::empty(like.sizes(), at::TensorOptions(device).dtype(at::kLong))),
      graph(device) {
  graph.capture([&] { logits = compute(tokens); });
}

void CapturedStep::capture(const at::Tensor& like, const Compute& compute) {
  try {
    capture_ = std::make_unique<Capture>(like, device_, compute);
  } catch (const std::exception& error) {
    // For want of memory tokens are computed as they come. Nothing ran, so
    // that nothing is lost.
    if (!is_out_of_memory(error)) throw;
    failed_ = true;
  }
}

at::Tensor CapturedStep::take(const at::Tensor& tokens,
                              const Compute& compute) {
  if (!capture_ && computed_ && !failed_ && device_.is_cuda()) {
    capture(tokens, compute);
  }
  if (!capture_) {
    const auto logits = compute(copied_to(tokens, device_));
    computed_ = true;
    return logits;
  }
  copy_into(capture_->tokens, tokens);
  capture_->graph.replay();
  return capture_->logits.clone();
}

}  // namespace reformer
