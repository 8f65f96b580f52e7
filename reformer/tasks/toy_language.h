// The made languages of translation-toy.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reformer/data/tokenizer.h"

namespace reformer {

// Tokens of the toy: 0 a word that is none of its own, 1 unused, 2 the end;
// then `words` of the source language ("bade") and as many of the target's
// ("abed"). A line is words with spaces between them.
inline constexpr int64_t kToyEnd = 2;
inline constexpr int64_t kFirstToyWord = 3;

std::shared_ptr<const Tokenizer> toy_language(int64_t words);

// What a sentence is in the other language: each word is another, and their
// order is the reverse. Of tokens without the end; those that are no words of
// the source language stay what they are. The same for every seed.
std::vector<int64_t> toy_translation(const std::vector<int64_t>& source,
                                     int64_t words);

}  // namespace reformer
