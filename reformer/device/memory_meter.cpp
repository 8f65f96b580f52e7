#include "reformer/device/memory_meter.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "reformer/base/memory.h"

namespace reformer {
namespace {

// Wraps the allocator that was there before, and counts.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* wrapped) : wrapped_(wrapped) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    auto* block = new Block{wrapped_->allocate(bytes), bytes};
    memory::add(static_cast<int64_t>(bytes));
    return {block->data.get(), block, &release, block->data.device()};
  }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    wrapped_->copy_data(to, from, bytes);
  }

  c10::Allocator* wrapped() const { return wrapped_; }

 private:
  struct Block {
    c10::DataPtr data;
    std::size_t bytes;
  };

  static void release(void* context) {
    auto* block = static_cast<Block*>(context);
    memory::add(-static_cast<int64_t>(block->bytes));
    delete block;
  }

  c10::Allocator* wrapped_;
};

// Never destroyed: tensors may outlive the meter, and even main.
CountingAllocator& counting_allocator() {
  static auto* allocator = new CountingAllocator(c10::GetCPUAllocator());
  return *allocator;
}

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
