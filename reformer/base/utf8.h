// Where the characters of UTF-8 begin and end.
#pragma once

#include <cstddef>
#include <string_view>

namespace reformer {

// Bytes of a character by its first: 1 to 4, 0 where none begins so.
size_t character_size(unsigned char first);

// How many bytes at the end of a text are the beginning of a character of which
// the rest is missing: 0 to 3.
size_t cut_character_size(std::string_view text);

}  // namespace reformer
