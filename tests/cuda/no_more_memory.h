// A GPU whose memory is taken.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <vector>

#include "reformer/device/device_memory.h"

namespace reformer {

// While it lives LibTorch gets nothing more of the device. A part of what it
// has is free, so that ordinary work goes on: in blocks that cannot be given
// back, because something else in each of them is used.
class NoMoreMemory {
 public:
  explicit NoMoreMemory(at::Device device) : device_(device) {
    leave_large_block();
    leave_small_blocks();
    limit_device_memory(device, 0);
  }
  ~NoMoreMemory() { limit_device_memory(device_, /*gibibytes=*/1e6); }
  NoMoreMemory(const NoMoreMemory&) = delete;
  NoMoreMemory& operator=(const NoMoreMemory&) = delete;

 private:
  static constexpr int64_t kMebibyte = int64_t{1} << 20;

  at::Tensor bytes(int64_t count) const {
    return at::empty({count}, at::TensorOptions(device_).dtype(at::kByte));
  }

  // LibTorch takes the smallest block that fits: others are filled before.
  void leave_large_block() {
    constexpr int64_t kBlock = 256 * kMebibyte;
    const auto* block = static_cast<const char*>(bytes(kBlock).data_ptr());
    std::vector<at::Tensor> before;
    for (int i = 0; i < 1000 && !used_.defined(); ++i) {
      auto part = bytes(12 * kMebibyte);
      const auto* place = static_cast<const char*>(part.data_ptr());
      if (place >= block && place < block + kBlock) used_ = part;
      before.push_back(part);
    }
  }

  // It cuts four of these from a block.
  void leave_small_blocks() {
    std::vector<at::Tensor> parts;
    for (int i = 0; i < 64; ++i) parts.push_back(bytes(kMebibyte / 2));
    for (int i = 0; i < 64; i += 4) small_.push_back(parts[i]);
  }

  at::Device device_;
  at::Tensor used_;
  std::vector<at::Tensor> small_;
};

}  // namespace reformer
