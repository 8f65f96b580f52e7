// Where the characters of UTF-8 begin and end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace reformer {

// Bytes of a character by its first: 1 to 4, 0 where none begins so.
size_t character_size(unsigned char first);

// How many bytes at the end of a text are the beginning of a character of which
// the rest is missing: 0 to 3.
size_t cut_character_size(std::string_view text);

// Whether all of it is UTF-8: no byte too many or too few, no form that is
// longer than it must be, no surrogate, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text);

// Its characters; nothing where it is not UTF-8.
std::optional<std::u32string> code_points(std::string_view text);

std::string utf8_of(const std::u32string& characters);

}  // namespace reformer
