// Bytes that come one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

namespace reformer {

class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Puts the next bytes into `out` and returns how many, 0 at the end only.
  // Throws Error, with the place and the reason, when they cannot be read.
  virtual size_t read(std::span<uint8_t> out) = 0;

  // As lseek; only where seekable().
  virtual bool seekable() const { return false; }
  virtual int64_t seek(int64_t /*offset*/, int /*whence*/) { return -1; }
};

// A stream that tells `count` how much was read of it.
class CountedStream : public ByteStream {
 public:
  CountedStream(ByteStream& stream, std::function<void(size_t)> count)
      : stream_(stream), count_(std::move(count)) {}
  size_t read(std::span<uint8_t> out) override {
    const size_t n = stream_.read(out);
    count_(n);
    return n;
  }

 private:
  ByteStream& stream_;
  std::function<void(size_t)> count_;
};

// Fills `out` as far as the stream goes; returns how many bytes that were.
size_t read_up_to(ByteStream& stream, std::span<uint8_t> out);

// All that is left of it. Throws Error beyond `most` bytes.
std::string read_all(ByteStream& stream, size_t most);

// The next `size` bytes, or as many as there are. Memory grows with what
// arrives: `size` may be anybody's claim.
std::string read_claimed(ByteStream& stream, size_t size);

}  // namespace reformer
