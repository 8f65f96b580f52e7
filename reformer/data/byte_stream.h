// Bytes that come one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

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

// Fills `out` as far as the stream goes; returns how many bytes that were.
size_t read_up_to(ByteStream& stream, std::span<uint8_t> out);

// All that is left of it. Throws Error beyond `most` bytes.
std::string read_all(ByteStream& stream, size_t most);

}  // namespace reformer
