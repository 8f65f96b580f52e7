#include "reformer/tasks/text_repeats.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

namespace reformer {
namespace {

constexpr int64_t kLeastSize = 64;
constexpr int64_t kSequenceOfLargest = 16;  // its length is so many of them

int octaves_in(int64_t least, int64_t most) {
  return std::bit_width(static_cast<uint64_t>(most / least));
}

// From `least` to `most`, of any octave above `least`.
int64_t of_any_octave(int64_t least, int64_t most, uint32_t octave_bits,
                      uint32_t bits) {
  const int64_t begin = least << below(octaves_in(least, most), octave_bits);
  const int64_t end = std::min(2 * begin, most + 1);
  return begin + below(end - begin, bits);
}

struct Sizes {
  int64_t least;
  int64_t most;

  explicit Sizes(int64_t length)
      : least(std::min(kLeastSize, length)),
        most(std::max(least, length / kSequenceOfLargest)) {}

  // Of of_any_octave, whose last octave may be cut short.
  int64_t mean() const {
    const int octaves = octaves_in(least, most);
    int64_t sum = 0;
    for (int octave = 0; octave < octaves; ++octave) {
      const int64_t begin = least << octave;
      sum += (begin + std::min(2 * begin - 1, most)) / 2;
    }
    return sum / octaves;
  }
};

}  // namespace

std::vector<SequencePiece> pieces_with_repeats(int64_t length, double share,
                                               PhiloxKey key) {
  assert(length > 0 && share >= 0 && share < 1);
  if (share == 0) return {{length}};
  const Sizes sizes(length);
  // At least a token: of a short sequence's first nothing can be a repeat.
  const int64_t mean_text =
      std::llround(std::clamp(double(sizes.mean()) * (1 - share) / share, 1.0,
                              double(std::numeric_limits<int32_t>::max())));
  std::vector<SequencePiece> pieces;
  int64_t at = 0;
  const auto add = [&](int64_t size, int64_t source) {
    if (size == 0) return;
    pieces.push_back({size, source});
    at += size;
  };
  for (uint32_t i = 0; at < length; ++i) {
    const auto text = philox(key, {i, 0, 0, 0});
    int64_t said = below(2 * mean_text + 1, text[0]);
    // A sequence begins within a text: what is left of one.
    if (i == 0) said = std::min(said, below(2 * mean_text + 1, text[3]));
    add(std::min(said, length - at), SequencePiece::kText);
    const int64_t size = std::min(
        of_any_octave(sizes.least, sizes.most, text[1], text[2]), length - at);
    if (size == 0 || size > at) continue;  // nothing so long was said yet
    const auto back = philox(key, {i, 1, 0, 0});
    add(size, at - of_any_octave(size, at, back[0], back[1]));
  }
  return pieces;
}

}  // namespace reformer
