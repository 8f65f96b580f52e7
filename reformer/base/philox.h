// Philox4x32-10, the counter-based random generator (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", SC 2011): a function of (key, counter)
// and of nothing else, so any number can be drawn again at any time, on any
// device, in any order.
#pragma once

#include <array>
#include <cstdint>

namespace reformer {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxCounter philox(PhiloxKey key, PhiloxCounter counter) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53;
  constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

// In (0, 1), never 0 or 1.
constexpr double uniform(uint32_t bits) { return (bits + 0.5) * 0x1p-32; }

// In [0, count), of at most 2^32; the product keeps the high bits, and its bias
// is below count / 2^32.
constexpr int64_t below(int64_t count, uint32_t bits) {
  return static_cast<int64_t>((uint64_t{bits} * uint64_t(count)) >> 32);
}

}  // namespace reformer
