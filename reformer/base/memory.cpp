#include "reformer/base/memory.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

namespace reformer {
namespace memory {
namespace {

std::atomic<int64_t> bytes_in_use{0};
std::atomic<int64_t> bytes_peak{0};

}  // namespace

void add(int64_t bytes) {
  const int64_t now = bytes_in_use.fetch_add(bytes) + bytes;
  int64_t seen = bytes_peak.load();
  while (now > seen && !bytes_peak.compare_exchange_weak(seen, now)) {
  }
}

int64_t in_use() { return bytes_in_use.load(); }
int64_t peak() { return bytes_peak.load(); }
void reset_peak() { bytes_peak.store(bytes_in_use.load()); }

}  // namespace memory

namespace {

// Blocks that this thread released and may ask for again, the oldest first. A
// task's scratch has the same sizes as the last task's, and memory fresh from
// the system costs a page fault for every 4 KiB: half of the attention's time.
class ReleasedBlocks {
 public:
  ~ReleasedBlocks() {
    for (const auto& block : blocks_) std::free(block.data);
  }

  void* take(std::size_t bytes) {
    for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
      if (block->bytes != bytes) continue;
      void* data = block->data;
      held_ -= bytes;
      blocks_.erase(block);
      return data;
    }
    return nullptr;
  }

  void keep(void* data, std::size_t bytes) {
    constexpr std::size_t kMostBytes = std::size_t{4} << 20;
    if (bytes > kMostBytes) return std::free(data);
    blocks_.push_back({data, bytes});
    held_ += bytes;
    while (held_ > kMostBytes) {
      held_ -= blocks_.front().bytes;
      std::free(blocks_.front().data);
      blocks_.erase(blocks_.begin());
    }
  }

 private:
  struct Block {
    void* data;
    std::size_t bytes;
  };
  std::vector<Block> blocks_;
  std::size_t held_ = 0;
};

thread_local ReleasedBlocks released_blocks;

}  // namespace

void* allocate_scratch(std::size_t bytes) {
  constexpr std::size_t kAlignment = 64;
  void* data = released_blocks.take(bytes);
  if (data == nullptr) {
    data =
        std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment);
  }
  if (data == nullptr) throw std::bad_alloc();
  memory::add(static_cast<int64_t>(bytes));
  return data;
}

void free_scratch(void* data, std::size_t bytes) {
  released_blocks.keep(data, bytes);
  memory::add(-static_cast<int64_t>(bytes));
}

}  // namespace reformer
