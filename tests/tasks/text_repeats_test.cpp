#include "reformer/tasks/text_repeats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>

namespace reformer {
namespace {

std::vector<SequencePiece> drawn(int64_t length, double share, uint32_t seed) {
  return pieces_with_repeats(length, share, {seed, 7});
}

TEST(TextRepeats, PiecesFillTheSequenceAndRepeatWhatIsThere) {
  for (const int64_t length : {1, 2, 63, 64, 65, 100, 1000, 1024, 65536}) {
    for (const double share : {0.01, 0.05, 0.5, 0.99}) {
      for (uint32_t seed = 0; seed < 20; ++seed) {
        int64_t at = 0;
        for (const auto& [size, source] : drawn(length, share, seed)) {
          ASSERT_GT(size, 0);
          if (source != SequencePiece::kText) {
            ASSERT_GE(source, 0);
            ASSERT_LE(source + size, at);
            ASSERT_LE(size, std::max<int64_t>(64, length / 16));
          }
          at += size;
        }
        ASSERT_EQ(at, length);
      }
    }
  }
}

TEST(TextRepeats, NoneWithoutAShare) {
  const auto pieces = drawn(1000, 0, 3);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].size, 1000);
  EXPECT_EQ(pieces[0].source, SequencePiece::kText);
}

TEST(TextRepeats, AboutTheShareIsRepeats) {
  constexpr uint32_t kSequences = 2000;
  for (const int64_t length : {1024, 4096, 65536}) {
    for (const double share : {0.02, 0.05, 0.1, 0.5}) {
      int64_t repeats = 0;
      for (uint32_t seed = 0; seed < kSequences; ++seed) {
        for (const auto& [size, source] : drawn(length, share, seed)) {
          if (source != SequencePiece::kText) repeats += size;
        }
      }
      EXPECT_NEAR(double(repeats) / (double(length) * kSequences), share,
                  0.12 * share)
          << length;
    }
  }
}

// Far ones are as likely as near ones, in octaves.
TEST(TextRepeats, OfAllSizesAndAtAllDistances) {
  constexpr int64_t kLength = 65536;
  std::map<int, int> sizes, distances;
  int count = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    int64_t at = 0;
    for (const auto& [size, source] : drawn(kLength, 0.1, seed)) {
      // The sequence's end cuts the last one, and early ones cannot be far.
      if (source != SequencePiece::kText && at > kLength / 2 &&
          at + size < kLength) {
        ++count;
        ++sizes[std::bit_width(uint64_t(size)) - 1];
        ++distances[std::bit_width(uint64_t(at - source)) - 1];
      }
      at += size;
    }
  }
  ASSERT_GT(count, 1000);
  for (int octave = 6; octave < 12; ++octave) {  // 64 to 4,095
    EXPECT_NEAR(double(sizes[octave]) / count, 1.0 / 6, 0.05) << octave;
  }
  for (int octave = 10; octave < 15; ++octave) {  // 1,024 to 32,767
    EXPECT_GT(double(distances[octave]) / count, 0.08) << octave;
  }
}

TEST(TextRepeats, OtherKeysOtherPieces) {
  const auto sizes = [](uint32_t seed) {
    std::vector<int64_t> all;
    for (const auto& piece : drawn(65536, 0.1, seed)) all.push_back(piece.size);
    return all;
  };
  EXPECT_EQ(sizes(1), sizes(1));
  EXPECT_NE(sizes(1), sizes(2));
}

}  // namespace
}  // namespace reformer
