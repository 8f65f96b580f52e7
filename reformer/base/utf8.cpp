#include "reformer/base/utf8.h"

#include <algorithm>

namespace reformer {
namespace {

unsigned char byte_at(std::string_view text, size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool continues(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// Of the second byte: neither too long a form, nor a surrogate, nor beyond the
// last character.
bool may_follow(unsigned char first, unsigned char second) {
  switch (first) {
    case 0xE0:
      return second >= 0xA0;
    case 0xED:
      return second < 0xA0;
    case 0xF0:
      return second >= 0x90;
    case 0xF4:
      return second < 0x90;
    default:
      return true;
  }
}

}  // namespace

size_t character_size(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
}

size_t cut_character_size(std::string_view text) {
  constexpr size_t kMost = 3;
  size_t n = 1;
  const size_t most = std::min(kMost, text.size());
  while (n <= most && continues(byte_at(text, text.size() - n))) ++n;
  if (n > most) return 0;
  const auto first = byte_at(text, text.size() - n);
  if (character_size(first) <= n) return 0;
  const bool possible =
      n == 1 || may_follow(first, byte_at(text, text.size() - n + 1));
  return possible ? n : 0;
}

}  // namespace reformer
