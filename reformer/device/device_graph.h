// Work on a GPU, recorded once and repeated by a single launch: for models so
// small that the host would take longer to ask than the GPU to do.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

#include "reformer/device/device_event.h"
#include "reformer/device/device_memory.h"

namespace reformer {

struct RecordingStream;

class DeviceGraph {
 public:
  explicit DeviceGraph(c10::Device device);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  // Calls `work`, whose launches are recorded and not run. It must not wait for
  // the device nor copy from the host, and should have run before. Tensors that
  // it makes and leaves behind are written anew by every replay. An exception
  // of `work` leaves nothing recorded. Gives back what LibTorch has free
  // before: while it records it could not.
  void record(const std::function<void()>& work);

  // Runs what was recorded, on the current stream. Threads may each replay
  // graphs of their own; those that one thread recorded run one after the
  // other, on whatever streams.
  void replay();

 private:
  c10::Device device_;
  std::shared_ptr<RecordingStream> shared_;
  MemoryPool memory_;
  void* graph_ = nullptr;
};

}  // namespace reformer
