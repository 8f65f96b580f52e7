// A step of generating on a GPU, asked for by one launch: its kernels take less
// time than the host's to launch them.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "reformer/device/cuda_graph.h"

namespace reformer {

class CapturedStep {
 public:
  // The logits [batch, vocabulary] after tokens [batch] int64 on the device.
  using Compute = std::function<at::Tensor(const at::Tensor& tokens)>;

  explicit CapturedStep(at::Device device) : device_(device) {}

  //   tokens  [batch] int64, on the CPU
  //   returns  what `compute` would, the caller's to keep
  //
  // The first call computes, the second captures, and from then on what was
  // captured is replayed: `compute` must ask for the same work on the same
  // memory every time, until `forget`, and change nothing on the host. Computes
  // as it comes on a CPU, and once there was no memory for a capture, until
  // `forget`.
  at::Tensor take(const at::Tensor& tokens, const Compute& compute);

  // The next call captures anew.
  void forget() {
    capture_.reset();
    failed_ = false;
  }

  bool captured() const { return capture_ != nullptr; }

 private:
  struct Capture {
    Capture(const at::Tensor& like, at::Device device, const Compute& compute);

    at::Tensor tokens;  // [batch] int64, on the device
    CudaGraph graph;
    at::Tensor logits;  // [batch, vocabulary], written by every replay
  };

  void capture(const at::Tensor& like, const Compute& compute);

  at::Device device_;
  bool computed_ = false;  // kernels are loaded when they first run
  bool failed_ = false;
  std::unique_ptr<Capture> capture_;
};

}  // namespace reformer
