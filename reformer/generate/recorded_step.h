// A step of generating on a GPU, asked for by one launch: its kernels take less
// time than the host's to launch them.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "reformer/device/device_graph.h"

namespace reformer {

class RecordedStep {
 public:
  // The logits [batch, vocabulary] after symbols [batch] int64 on the device.
  using Compute = std::function<at::Tensor(const at::Tensor& symbols)>;

  explicit RecordedStep(at::Device device) : device_(device) {}

  //   symbols  [batch] int64, on the CPU
  //   returns  what `compute` would, the caller's to keep
  //
  // The first call computes, the second records, and from then on what was
  // recorded is repeated: `compute` must ask for the same work on the same
  // memory every time, until `forget`, and change nothing on the host. Computes
  // as it comes on a CPU, and once there was no memory for a recording, until
  // `forget`.
  at::Tensor take(const at::Tensor& symbols, const Compute& compute);

  // The next call records anew.
  void forget() {
    recording_.reset();
    failed_ = false;
  }

  bool recorded() const { return recording_ != nullptr; }

 private:
  struct Recording {
    Recording(const at::Tensor& like, at::Device device,
              const Compute& compute);

    at::Tensor symbols;  // [batch] int64, on the device
    DeviceGraph graph;
    at::Tensor logits;  // [batch, vocabulary], written by every replay
  };

  void record(const at::Tensor& like, const Compute& compute);

  at::Device device_;
  bool computed_ = false;  // kernels are loaded when they first run
  bool failed_ = false;
  std::unique_ptr<Recording> recording_;
};

}  // namespace reformer
