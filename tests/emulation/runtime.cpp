// As much of CUDA's runtime as the kernels under test and their tests call.
// With it none of NVIDIA's is linked: two definitions would be an error.
#include <cuda_runtime.h>

#include <cstring>
#include <map>
#include <memory>

#include "tests/emulation/emulator.h"
#include "tests/emulation/guarded_memory.h"

using reformer::emulation::GuardedMemory;

namespace {

std::map<void*, std::unique_ptr<GuardedMemory>> allocations;

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  auto memory = std::make_unique<GuardedMemory>(bytes, 16);
  *pointer = memory->data();
  allocations[*pointer] = std::move(memory);
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  allocations.erase(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes,
                       cudaMemcpyKind) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }

const char* cudaGetErrorName(cudaError_t) { return "an error"; }
const char* cudaGetErrorString(cudaError_t) { return "not emulated"; }

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = 1;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = reformer::emulation::most_shared_memory;
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->ptxVersion = 90;
  return cudaSuccess;
}

}  // extern "C"
