// Training sequences in which pieces of the text come a second time: who finds
// the first time again is rewarded at every distance, where plain text seldom
// repeats anything word for word.
#pragma once

#include <cstdint>
#include <vector>

#include "reformer/base/philox.h"

namespace reformer {

// Tokens of a sequence, behind those of the piece before.
struct SequencePiece {
  static constexpr int64_t kText = -1;

  int64_t size = 0;
  // kText: the text goes on where it was left; else the position in the same
  // sequence from which on they are said again, at least `size` before.
  int64_t source = kText;
};

// Pieces of `length` tokens in all, about `share` of which are repeats: of 64
// tokens to a sixteenth of the sequence (of that length at least, where it is
// short), from one size to the whole sequence so far behind, every octave of
// either as likely as the others. Where a repeat ends the text goes on as if it
// had not been. A function of its arguments, in whole numbers: the same on
// every machine. 0 <= share < 1.
std::vector<SequencePiece> pieces_with_repeats(int64_t length, double share,
                                               PhiloxKey key);

}  // namespace reformer
