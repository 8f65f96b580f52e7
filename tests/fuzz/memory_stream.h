// A ByteStream of bytes in memory.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <string>

#include "reformer/data/byte_stream.h"

namespace reformer::fuzz {

class MemoryStream : public ByteStream {
 public:
  // At most `most` bytes at a time: a stream need not give all it is asked for.
  explicit MemoryStream(std::string bytes, bool seekable = true,
                        size_t most = 1 << 16)
      : bytes_(std::move(bytes)), seekable_(seekable), most_(most) {}

  size_t read(std::span<uint8_t> out) override {
    const size_t n = std::min({out.size(), bytes_.size() - at_, most_});
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(at_), n, out.begin());
    at_ += n;
    return n;
  }

  bool seekable() const override { return seekable_; }
  int64_t seek(int64_t offset, int whence) override {
    const auto size = static_cast<int64_t>(bytes_.size());
    const int64_t origin = whence == SEEK_SET   ? 0
                           : whence == SEEK_CUR ? static_cast<int64_t>(at_)
                                                : size;
    at_ = static_cast<size_t>(std::clamp<int64_t>(origin + offset, 0, size));
    return static_cast<int64_t>(at_);
  }

 private:
  std::string bytes_;
  bool seekable_;
  size_t most_;
  size_t at_ = 0;
};

}  // namespace reformer::fuzz
