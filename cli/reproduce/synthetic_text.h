// A text for experiments where there is no other.
#pragma once

#include <cstdint>
#include <string>

namespace reformer::cli {

// `bytes` of made-up English-like sentences: a hundred words, frequent ones
// more often, and names that are introduced once and come back for the length
// of a paragraph, so that what was said earlier helps to predict. Always the
// same for a seed.
std::string synthetic_text(int64_t bytes, uint64_t seed);

}  // namespace reformer::cli
