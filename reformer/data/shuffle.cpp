#include "reformer/data/shuffle.h"

#include <bit>
#include <cassert>

namespace reformer {
namespace {

// Of four rounds, some of 5 places were a tenth too likely.
constexpr uint32_t kRounds = 8;

// Feistel rounds permute the numbers of 2 * half bits, whatever `philox`
// returns: a round can be undone.
uint64_t permuted(uint64_t x, int half, PhiloxKey key) {
  const uint64_t mask = (uint64_t{1} << half) - 1;
  uint64_t left = x >> half;
  uint64_t right = x & mask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const auto bits = philox(key, {static_cast<uint32_t>(right), round, 0, 0});
    const uint64_t next = left ^ (bits[0] & mask);
    left = right;
    right = next;
  }
  return left << half | right;
}

}  // namespace

// The numbers go in cycles, so following one from inside [0, count) comes back
// inside; at most 4 times as many are outside, so that takes a few steps.
int64_t shuffled(int64_t i, int64_t count, PhiloxKey key) {
  assert(i >= 0 && i < count && count <= int64_t{1} << 62);
  const int bits = std::bit_width(static_cast<uint64_t>(count - 1));
  const int half = (bits + 1) / 2;
  auto x = static_cast<uint64_t>(i);
  do {
    x = permuted(x, half, key);
  } while (x >= static_cast<uint64_t>(count));
  return static_cast<int64_t>(x);
}

}  // namespace reformer
