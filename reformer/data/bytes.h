// Bytes that are read where and when they are asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace reformer {

class Bytes {
 public:
  virtual ~Bytes() = default;

  virtual const std::string& path() const = 0;  // for messages
  virtual int64_t size() const = 0;             // at least 1

  // Fills `out` with the bytes from `begin` on, all within size(). May be
  // called from several threads. Throws Error when they cannot be read.
  virtual void read(int64_t begin, std::span<uint8_t> out) const = 0;
};

}  // namespace reformer
