// How large embeddings of n-grams may be.
#pragma once

#include <cstdint>

namespace reformer {

inline constexpr int64_t kLongestNgram = 8;
inline constexpr int64_t kMostNgramRows = int64_t{1} << 24;

}  // namespace reformer
