// Counts the bytes that operations use, by hooking the allocator.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace reformer {

// While one exists, every tensor's memory on its device is counted, on the CPU
// together with the kernels' scratch memory. CUDA's are those of LibTorch's
// allocator, multiples of 512 bytes. At most one at a time; tensors may outlive
// it.
class MemoryMeter {
 public:
  explicit MemoryMeter(at::Device device = at::kCPU);
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  void reset();                  // counts from here
  int64_t peak_bytes() const;    // the most in use since, above the start
  int64_t in_use_bytes() const;  // now, above the start

 private:
  at::Device device_;
  int64_t start_;
};

}  // namespace reformer
