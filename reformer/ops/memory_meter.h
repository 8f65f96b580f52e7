// Counts the bytes that operations use, by hooking the allocator.
#pragma once

#include <cstdint>

namespace reformer {

// While one exists, every CPU tensor's memory is counted together with the
// kernels' scratch memory. At most one at a time; tensors may outlive it.
class MemoryMeter {
 public:
  MemoryMeter();
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  void reset();                  // counts from here
  int64_t peak_bytes() const;    // the most in use since, above the start
  int64_t in_use_bytes() const;  // now, above the start

 private:
  int64_t start_;
};

}  // namespace reformer
