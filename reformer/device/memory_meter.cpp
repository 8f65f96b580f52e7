#include "reformer/device/memory_meter.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <mutex>
#include <unordered_map>

#include "reformer/base/memory.h"

namespace reformer {
namespace {

void release_counted(void* at);

// Wraps the allocator that was there before, and counts. A block is known by
// its address, as who allocates without a tensor wants it (oneDNN).
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* wrapped) : wrapped_(wrapped) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    void* const at = wrapped_->raw_allocate(bytes);
    if (at != nullptr) {
      const std::lock_guard lock(mutex_);
      auto& counted = bytes_[at];  // not 0: released behind our back
      memory::add(static_cast<int64_t>(bytes - counted));
      counted = bytes;
    }
    return {at, at, &release_counted, at::kCPU};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release_counted; }

  // Also what was allocated before there was a meter.
  void release(void* at) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto counted = bytes_.extract(at)) {
        memory::add(-static_cast<int64_t>(counted.mapped()));
      }
    }
    if (at != nullptr) wrapped_->raw_deallocate(at);
  }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    wrapped_->copy_data(to, from, bytes);
  }

  c10::Allocator* wrapped() const { return wrapped_; }

 private:
  c10::Allocator* wrapped_;
  std::mutex mutex_;
  std::unordered_map<void*, std::size_t> bytes_;  // under the mutex
};

// Never destroyed: tensors may outlive the meter, and even main.
CountingAllocator& counting_allocator() {
  static auto* allocator = new CountingAllocator(c10::GetCPUAllocator());
  return *allocator;
}

void release_counted(void* at) { counting_allocator().release(at); }

constexpr uint8_t kPriority = 100;  // above LibTorch's own

c10::CachingAllocator::Stat allocated_bytes(at::Device device) {
  const auto stats =
      c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats.allocated_bytes[static_cast<size_t>(
      c10::CachingAllocator::StatType::AGGREGATE)];
}

}  // namespace

MemoryMeter::MemoryMeter(at::Device device) : device_(device) {
  if (device.is_cpu()) c10::SetCPUAllocator(&counting_allocator(), kPriority);
  reset();
}

MemoryMeter::~MemoryMeter() {
  if (!device_.is_cpu()) return;
  c10::SetCPUAllocator(counting_allocator().wrapped(), kPriority);
}

void MemoryMeter::reset() {
  if (device_.is_cpu()) {
    memory::reset_peak();
    start_ = memory::in_use();
  } else {
    c10::getDeviceAllocator(device_.type())->resetPeakStats(device_.index());
    start_ = allocated_bytes(device_).current;
  }
}

int64_t MemoryMeter::peak_bytes() const {
  const int64_t peak =
      device_.is_cpu() ? memory::peak() : allocated_bytes(device_).peak;
  return peak - start_;
}

int64_t MemoryMeter::in_use_bytes() const {
  const int64_t in_use =
      device_.is_cpu() ? memory::in_use() : allocated_bytes(device_).current;
  return in_use - start_;
}

}  // namespace reformer
