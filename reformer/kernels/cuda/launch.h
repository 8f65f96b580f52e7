// What every CUDA kernel's launch needs: checks, and sizes of grids.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <string>

#include "reformer/base/errors.h"
#include "reformer/base/out_of_memory.h"

namespace reformer::kernels::cuda {

// Throws Error; OutOfMemory where that is what CUDA says.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaErrorMemoryAllocation) {
    throw OutOfMemory(std::string(what) + ": the GPU is out of memory");
  }
  require(status == cudaSuccess, what, ": CUDA error ",
          cudaGetErrorName(status), ", ", cudaGetErrorString(status));
}

// After every launch: throws Error, naming the kernel, unless it was accepted.
// What goes wrong while it runs is found by the next call that waits.
inline void check_launch(const char* kernel) {
  check(cudaGetLastError(), kernel);
}

inline cudaStream_t stream_of(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

inline int64_t ceil_div(int64_t n, int64_t d) { return (n + d - 1) / d; }

// The grid that covers n items; along x, the only long dimension.
inline dim3 grid_for(int64_t n, int64_t items_per_block, const char* kernel) {
  const int64_t blocks = ceil_div(n, items_per_block);
  require(blocks <= INT32_MAX, kernel, ": too large, ", n, " items");
  return dim3(static_cast<unsigned>(blocks));
}

inline int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

// Of the current device.
inline int device_attribute(cudaDeviceAttr attribute) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, attribute, current_device()),
        "cudaDeviceGetAttribute");
  return value;
}

inline int multiprocessors() {
  return device_attribute(cudaDevAttrMultiProcessorCount);
}

// What a block may have on every GPU from compute capability 8.0 on, in bytes:
// as much as 8.6 and 8.9 have.
inline constexpr int64_t kLeastSharedMemory = 99 * 1024;

// No GPU has more than this while a test lowers it: how the least of them is
// tested on the largest.
inline std::atomic<int> shared_memory_for_tests{
    std::numeric_limits<int>::max()};

// The most that a block may have on the current device, in bytes.
inline int most_shared_memory() {
  return std::min(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
                  shared_memory_for_tests.load(std::memory_order_relaxed));
}

// Asks the device only where the answer depends on it.
inline bool fits_shared_memory(int64_t bytes) {
  return bytes <= kLeastSharedMemory || bytes <= most_shared_memory();
}

// More than 48 KB of dynamic shared memory must be asked for.
template <class Kernel>
void allow_shared_memory(Kernel* kernel, int64_t bytes, const char* name) {
  if (bytes <= 48 * 1024) return;
  require(bytes <= shared_memory_for_tests.load(std::memory_order_relaxed),
          name, ": a block would need ", bytes, " bytes of shared memory");
  check(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(bytes)),
      name);
}

}  // namespace reformer::kernels::cuda
