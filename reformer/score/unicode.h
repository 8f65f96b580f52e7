// What BLEU has to know of characters: the Unicode Character Database's general
// categories, spaces and lower case (unicode_table.h).
#pragma once

#include <string>

namespace reformer::unicode {

bool is_punctuation(char32_t c);  // \p{P}
bool is_symbol(char32_t c);       // \p{S}
bool is_number(char32_t c);       // \p{N}

// Python's: of bidirectional class WS, B or S, or a space separator. Not the
// property White_Space, which lacks U+001C to U+001F.
bool is_space(char32_t c);

// Full lower case, as the standard's section 3.13 has it without a language: of
// U+0130 two characters, and of a sigma at the end of a word the final one.
std::u32string lowered(const std::u32string& text);

}  // namespace reformer::unicode
