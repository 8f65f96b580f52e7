#include "reformer/base/xxhash64.h"

#include <bit>
#include <cstring>

#include "reformer/base/hex.h"

namespace reformer {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

template <class Integer>
uint64_t load(const unsigned char* p) {
  Integer value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

uint64_t round(uint64_t lane, uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

uint64_t merge(uint64_t hash, uint64_t lane) {
  return (hash ^ round(0, lane)) * kPrime1 + kPrime4;
}

// Whole stripes of 32 bytes. Four lanes that do not wait for one another are
// what makes it quick.
uint64_t hash_stripes(const unsigned char* p, const unsigned char* end) {
  uint64_t a = kPrime1 + kPrime2;
  uint64_t b = kPrime2;
  uint64_t c = 0;
  uint64_t d = 0 - kPrime1;
  for (; p != end; p += 32) {
    a = round(a, load<uint64_t>(p));
    b = round(b, load<uint64_t>(p + 8));
    c = round(c, load<uint64_t>(p + 16));
    d = round(d, load<uint64_t>(p + 24));
  }
  const uint64_t hash =
      std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
  return merge(merge(merge(merge(hash, a), b), c), d);
}

uint64_t hash_tail(uint64_t hash, const unsigned char* p,
                   const unsigned char* end) {
  for (; end - p >= 8; p += 8) {
    hash ^= round(0, load<uint64_t>(p));
    hash = std::rotl(hash, 27) * kPrime1 + kPrime4;
  }
  if (end - p >= 4) {
    hash ^= load<uint32_t>(p) * kPrime1;
    hash = std::rotl(hash, 23) * kPrime2 + kPrime3;
    p += 4;
  }
  for (; p != end; ++p) {
    hash ^= *p * kPrime5;
    hash = std::rotl(hash, 11) * kPrime1;
  }
  return hash;
}

uint64_t avalanche(uint64_t hash) {
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace

uint64_t xxhash64(const void* data, size_t size) {
  // No tensor has an address when it has no elements.
  if (size == 0) return avalanche(kPrime5);
  const auto* begin = static_cast<const unsigned char*>(data);
  const auto* tail = begin + size / 32 * 32;
  uint64_t hash = size < 32 ? kPrime5 : hash_stripes(begin, tail);
  hash = hash_tail(hash + size, tail, begin + size);
  return avalanche(hash);
}

std::string xxhash64_hex(const void* data, size_t size) {
  const uint64_t hash = xxhash64(data, size);
  uint8_t bytes[8];  // the highest first
  for (int i = 0; i < 8; ++i) {
    bytes[i] = static_cast<uint8_t>(hash >> (56 - 8 * i));
  }
  return hex(bytes);
}

std::string xxhash64_hex(const std::string& text) {
  return xxhash64_hex(text.data(), text.size());
}

}  // namespace reformer
