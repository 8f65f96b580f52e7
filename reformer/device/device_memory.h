// What LibTorch's allocator of GPU memory offers beyond its neutral interface.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace reformer {

// All that the device has, free or not.
int64_t device_memory_bytes(c10::Device device);

// From here on LibTorch takes no more of the device than this, CUDA's own
// memory aside; what would need more is out of memory, a c10::Error.
void limit_device_memory(c10::Device device, double gibibytes);

// Memory that serves one capture (CudaGraph) and nobody else: a replayed
// graph writes to the places it was captured with. From begin to end whatever
// is allocated on `stream` comes from here. Tensors may outlive it.
class MemoryPool {
 public:
  explicit MemoryPool(c10::Device device);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  void begin(void* stream);
  void end();

 private:
  c10::Device device_;
  uint64_t id_;
  bool used_ = false;
};

}  // namespace reformer
