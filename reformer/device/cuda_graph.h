// A CUDA graph: work on a GPU, captured once and replayed by a single launch.
// For models so small that the host would take longer to ask than the GPU to
// do.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

#include "reformer/device/device_event.h"
#include "reformer/device/device_memory.h"

namespace reformer {

struct CaptureStream;

class CudaGraph {
 public:
  explicit CudaGraph(c10::Device device);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  // Calls `work`, whose launches are captured and not run. It must not wait for
  // the device nor copy from the host, and should have run before. Tensors that
  // it makes and leaves behind are written anew by every replay. An exception
  // of `work` leaves nothing captured. Gives back what LibTorch has free
  // before: while it captures it could not.
  void capture(const std::function<void()>& work);

  // Runs what was captured, on the current stream. Threads may each replay
  // graphs of their own; those that one thread captured run one after the
  // other, on whatever streams.
  void replay();

 private:
  c10::Device device_;
  std::shared_ptr<CaptureStream> shared_;
  MemoryPool memory_;
  void* graph_ = nullptr;
};

}  // namespace reformer
