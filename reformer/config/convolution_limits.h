// How far short convolutions may reach.
#pragma once

#include <cstdint>

namespace reformer {

// The positions before its own that a filter reaches, at most.
inline constexpr int64_t kMostConvolutionTaps = 4;

}  // namespace reformer
