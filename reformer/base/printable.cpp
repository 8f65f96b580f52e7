#include "reformer/base/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "reformer/base/utf8.h"

namespace reformer {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kMore = "\xE2\x80\xA6";         // U+2026

struct Character {
  uint32_t code;
  size_t size;  // bytes; 0: not UTF-8
};

Character first_character(std::string_view text) {
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t size = character_size(first);
  if (size == 0 || size > text.size()) return {0, 0};
  if (size == 1) return {first, 1};
  uint32_t code = first & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {0, 0};
    code = code << 6 | (next & 0x3F);
  }
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  const bool valid = code >= kLeast[size] && code < 0x110000 && !surrogate;
  return {code, valid ? size : 0};
}

bool is_command(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) ||  // controls
         (code >= 0x2028 && code <= 0x202E) ||  // ends of lines, directions
         (code >= 0x2066 && code <= 0x2069) ||  // directions
         (code & 0xFFFE) == 0xFFFE;             // no characters
}

}  // namespace

std::string printable(std::string_view text, size_t most) {
  std::string result;
  for (size_t count = 1; !text.empty(); ++count) {
    const auto [code, size] = first_character(text);
    const size_t taken = size == 0 ? 1 : size;
    if (count == most && taken < text.size()) return result.append(kMore);
    const bool shown = size > 0 && !is_command(code);
    result.append(shown ? text.substr(0, size) : kReplacement);
    text.remove_prefix(taken);
  }
  return result;
}

std::string printable_lines(std::string_view text, std::string_view indent) {
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    result.append(indent).append(printable(text.substr(0, end), text.size()));
    result += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace reformer
