// SHA-256 (FIPS 180-4): a name for bytes that nobody can give to others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace reformer {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  void add(const void* data, size_t size);
  void add(std::string_view text) { add(text.data(), text.size()); }

  // Of all that was added; nothing may be added after it.
  Sha256Digest finish();

 private:
  void take_block(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                    0xa54ff53a, 0x510e527f, 0x9b05688c,
                                    0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> waiting_;  // for the rest of its block
  uint64_t size_ = 0;                // of all so far
};

}  // namespace reformer
