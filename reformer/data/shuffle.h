// A shuffled order that needs no memory.
#pragma once

#include <cstdint>

#include "reformer/base/philox.h"

namespace reformer {

// Where index `i` of `count` goes: for each key another permutation of
// [0, count), any place of which can be asked for by itself.
int64_t shuffled(int64_t i, int64_t count, PhiloxKey key);

}  // namespace reformer
