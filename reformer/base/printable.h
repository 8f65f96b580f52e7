// Strangers' texts, made harmless where people read them.
#pragma once

#include <string>
#include <string_view>

namespace reformer {

// The same text as valid UTF-8 on one line: U+FFFD stands for each byte that is
// none, and for characters that command a terminal, end a line or turn around
// what follows. At most `most` characters, the last of them … where more were
// given.
std::string printable(std::string_view text, size_t most = 200);

// The same of a text of several lines, whose ends stay; `indent` before each.
std::string printable_lines(std::string_view text, std::string_view indent);

}  // namespace reformer
