// Calls virtual functions of LibTorch's CUDA allocator alone, because the
// program is not linked with its CUDA part (docs/decisions/007).
#include "reformer/device/device_memory.h"

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <atomic>

namespace reformer {
namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;

CUDAAllocator& allocator() {
  return *static_cast<CUDAAllocator*>(c10::GetAllocator(c10::kCUDA));
}

// LibTorch counts its own pools from 1, in either half of the name. Its tables
// hash the first half alone and double for every further name of the same hash:
// the count has to be in that half.
c10::MempoolId_t name_of(uint64_t id) { return {(0x5246ULL << 48) + id, 0}; }

std::atomic<uint64_t> pools{0};

}  // namespace

int64_t device_memory_bytes(c10::Device device) {
  // A device without a number is the first.
  const auto index = std::max<c10::DeviceIndex>(device.index(), 0);
  const auto [free, total] = allocator().getMemoryInfo(index);
  return static_cast<int64_t>(total);
}

void limit_device_memory(c10::Device device, double gibibytes) {
  const auto total = double(device_memory_bytes(device));
  allocator().setMemoryFraction(
      std::clamp(gibibytes * (1 << 30) / total, 0.0, 1.0), device.index());
}

MemoryPool::MemoryPool(c10::Device device) : device_(device), id_(++pools) {}

MemoryPool::~MemoryPool() {
  if (used_) allocator().releasePool(device_.index(), name_of(id_));
}

void MemoryPool::begin(void* stream) {
  // What earlier work left is of no use here, and cannot be given back while a
  // stream is captured.
  allocator().emptyCache({0, 0});
  allocator().beginAllocateToPool(
      device_.index(), name_of(id_),
      [stream](cudaStream_t asking) { return asking == stream; });
  used_ = true;
}

void MemoryPool::end() {
  allocator().endAllocateToPool(device_.index(), name_of(id_));
}

}  // namespace reformer
