// In place of device/cuda, where nvcc was not found: no GPU tensor exists then.
#include "reformer/device/device_memory.h"

#include "reformer/base/errors.h"
#include "reformer/kernels/device.h"

namespace reformer {
namespace {

[[noreturn]] void absent() {
  throw Error("no CUDA here: " + kernels::cuda::why_unavailable());
}

}  // namespace

int64_t device_memory_bytes(c10::Device /*device*/) { absent(); }

void limit_device_memory(c10::Device /*device*/, double /*gibibytes*/) {
  absent();
}

MemoryPool::MemoryPool(c10::Device device) : device_(device), id_(0) {
  absent();
}
MemoryPool::~MemoryPool() {}  // never runs: none is ever made
void MemoryPool::begin(void* /*stream*/) { absent(); }
void MemoryPool::end() { absent(); }

}  // namespace reformer
