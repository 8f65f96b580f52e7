// Bytes that are read where and when they are asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace reformer {

// What is hashed at a time.
inline constexpr int64_t kHashedBlock = 1 << 18;

class Bytes {
 public:
  virtual ~Bytes() = default;

  virtual const std::string& path() const = 0;  // for messages
  virtual int64_t size() const = 0;             // at least 1

  // Fills `out` with the bytes from `begin` on, all within size(). May be
  // called from several threads. Throws Error when they cannot be read.
  virtual void read(int64_t begin, std::span<uint8_t> out) const = 0;

  // Of every byte, and of the labels where there are any: the same bytes have
  // the same hash wherever they come from. Reads all of them once, with all
  // threads, unless their hashes are known.
  virtual std::string content_hash() const;
};

}  // namespace reformer
