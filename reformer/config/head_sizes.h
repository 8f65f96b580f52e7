// How wide an attention head may be.
#pragma once

#include <cstdint>

namespace reformer {

inline constexpr int64_t kMinHeadSize = 8;
inline constexpr int64_t kMaxHeadSize = 256;

}  // namespace reformer
