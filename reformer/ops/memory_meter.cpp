#include "reformer/ops/memory_meter.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "reformer/core/memory.h"

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

}  // namespace

MemoryMeter::MemoryMeter() {
  c10::SetCPUAllocator(&counting_allocator(), kPriority);
  reset();
}

MemoryMeter::~MemoryMeter() {
  c10::SetCPUAllocator(counting_allocator().wrapped(), kPriority);
}

void MemoryMeter::reset() {
  start_ = memory::in_use();
  memory::reset_peak();
}

int64_t MemoryMeter::peak_bytes() const { return memory::peak() - start_; }
int64_t MemoryMeter::in_use_bytes() const { return memory::in_use() - start_; }

}  // namespace reformer
