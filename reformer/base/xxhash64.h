// XXH64, the 64-bit xxHash: a checksum at the speed of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace reformer {

// XXH64 of `size` bytes with seed 0, as `xxhsum -H64` prints it.
uint64_t xxhash64(const void* data, size_t size);

// The same in 16 lower-case hexadecimal digits.
std::string xxhash64_hex(const void* data, size_t size);
std::string xxhash64_hex(const std::string& text);

}  // namespace reformer
