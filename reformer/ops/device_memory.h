// What LibTorch's allocator of GPU memory offers beyond its neutral interface.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace reformer {

// Memory that serves one recording (DeviceGraph) and nobody else: a repeated
// graph writes to the places it was recorded with. From begin to end whatever
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
