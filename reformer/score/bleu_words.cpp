// How lines become words: the published rules of mteval-v13a and -v14.
#include <string_view>

#include "reformer/base/errors.h"
#include "reformer/base/utf8.h"
#include "reformer/score/bleu.h"
#include "reformer/score/unicode.h"

namespace reformer {
namespace {

using Text = std::u32string;

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_point_or_comma(char32_t c) { return c == U'.' || c == U','; }

// ASCII's punctuation and symbols but for ' , - . (and the space, which is
// apart anyway).
bool is_apart_in_13a(char32_t c) {
  return (c >= U' ' && c <= U'&') || (c >= U'(' && c <= U'+') || c == U'/' ||
         (c >= U':' && c <= U'@') || (c >= U'[' && c <= U'`') ||
         (c >= U'{' && c <= U'~');
}

void replace_all(Text& text, std::u32string_view from, std::u32string_view to) {
  for (size_t at = text.find(from); at != Text::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Spaces around every character that `apart` takes.
template <class Apart>
Text with_apart(const Text& text, const Apart& apart) {
  Text out;
  for (const char32_t c : text) {
    if (apart(c)) {
      ((out += U' ') += c) += U' ';
    } else {
      out += c;
    }
  }
  return out;
}

// From left to right, each pair of neighbours (a, b) that `matches` takes is
// written as `write` does, and the search goes on behind b: a character is in
// one pair at most, as in a substitution of a regular expression.
template <class Matches, class Write>
Text with_pairs(const Text& text, const Matches& matches, const Write& write) {
  Text out;
  size_t i = 0;
  while (i < text.size()) {
    if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
      write(out, text[i], text[i + 1]);
      i += 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

void write_second_apart(Text& out, char32_t a, char32_t b) {
  (((out += a) += U' ') += b) += U' ';
}
void write_first_apart(Text& out, char32_t a, char32_t b) {
  (((out += U' ') += a) += U' ') += b;
}

Text split_13a(Text line) {
  replace_all(line, U"<skipped>", U"");
  replace_all(line, U"&quot;", U"\"");
  replace_all(line, U"&amp;", U"&");
  replace_all(line, U"&lt;", U"<");
  replace_all(line, U"&gt;", U">");
  Text text = with_apart(U" " + line + U" ", is_apart_in_13a);
  text = with_pairs(
      text,
      [](char32_t a, char32_t b) {
        return !is_digit(a) && is_point_or_comma(b);
      },
      write_second_apart);
  text = with_pairs(
      text,
      [](char32_t a, char32_t b) {
        return is_point_or_comma(a) && !is_digit(b);
      },
      write_first_apart);
  return with_pairs(
      text, [](char32_t a, char32_t b) { return is_digit(a) && b == U'-'; },
      write_second_apart);
}

Text split_intl(const Text& line) {
  using unicode::is_number;
  using unicode::is_punctuation;
  Text text = with_pairs(
      line,
      [](char32_t a, char32_t b) { return !is_number(a) && is_punctuation(b); },
      write_second_apart);
  text = with_pairs(
      text,
      [](char32_t a, char32_t b) { return is_punctuation(a) && !is_number(b); },
      write_first_apart);
  return with_apart(text, unicode::is_symbol);
}

// Runs of spaces become one, those at the ends none.
Text with_single_spaces(const Text& text) {
  Text out;
  bool between = false;
  for (const char32_t c : text) {
    if (unicode::is_space(c)) {
      between = !out.empty();
      continue;
    }
    if (between) out += U' ';
    between = false;
    out += c;
  }
  return out;
}

}  // namespace

std::string bleu_words(const std::string& line, const BleuOptions& options) {
  const auto decoded = code_points(line);
  require(decoded.has_value(), "bleu: text in UTF-8 is required");
  Text text = *decoded;
  while (!text.empty() && unicode::is_space(text.back())) text.pop_back();
  if (options.lowercase) text = unicode::lowered(text);
  text = options.tokenization == BleuTokenization::k13a
             ? split_13a(std::move(text))
             : split_intl(text);
  return utf8_of(with_single_spaces(text));
}

}  // namespace reformer
