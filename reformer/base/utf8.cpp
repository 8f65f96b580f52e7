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

// Of the character that begins `text`, which is not empty; 0: none does.
size_t whole_character_size(std::string_view text) {
  const auto first = byte_at(text, 0);
  const size_t size = character_size(first);
  if (size == 0 || size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    const auto next = byte_at(text, i);
    if (!continues(next) || (i == 1 && !may_follow(first, next))) return 0;
  }
  return size;
}

char32_t code_point(std::string_view character) {
  constexpr unsigned char kFirstBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t point = byte_at(character, 0) & kFirstBits[character.size()];
  for (size_t i = 1; i < character.size(); ++i) {
    point = (point << 6) | (byte_at(character, i) & 0x3F);
  }
  return point;
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

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = whole_character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::optional<std::u32string> code_points(std::string_view text) {
  std::u32string points;
  points.reserve(text.size());
  while (!text.empty()) {
    const size_t size = whole_character_size(text);
    if (size == 0) return {};
    points += code_point(text.substr(0, size));
    text.remove_prefix(size);
  }
  return points;
}

std::string utf8_of(const std::u32string& characters) {
  std::string text;
  const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
  for (const char32_t c : characters) {
    if (c < 0x80) {
      add(c);
      continue;
    }
    // Further bytes hold six bits each, the first one what is left.
    const int further = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    constexpr char32_t kMarks[] = {0, 0xC0, 0xE0, 0xF0};
    add(kMarks[further] | (c >> (6 * further)));
    for (int i = further - 1; i >= 0; --i) add(0x80 | ((c >> (6 * i)) & 0x3F));
  }
  return text;
}

}  // namespace reformer
