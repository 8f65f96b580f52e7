#include "reformer/score/unicode.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "reformer/score/unicode_table.h"

namespace reformer::unicode {
namespace {

constexpr char32_t kCapitalSigma = 0x3A3;
constexpr char32_t kSmallSigma = 0x3C3;
constexpr char32_t kFinalSigma = 0x3C2;
constexpr char32_t kCapitalDottedI = 0x130;
constexpr char32_t kDotAbove = 0x307;

// The range that may hold `c`: the first that does not end before it.
template <class Row, std::size_t size>
const Row* row_of(const Row (&table)[size], char32_t c) {
  const auto* found = std::lower_bound(
      std::begin(table), std::end(table), c,
      [](const Row& row, char32_t point) { return row.last < point; });
  return found != std::end(table) && found->first <= c ? found : nullptr;
}

char32_t simple_lower(char32_t c) {
  const LowerRange* row = row_of(kLower, c);
  if (row == nullptr || (c - row->first) % char32_t(row->step) != 0) return c;
  return static_cast<char32_t>(static_cast<int32_t>(c) + row->change);
}

bool is_cased(char32_t c) { return row_of(kCased, c) != nullptr; }
bool is_case_ignorable(char32_t c) {
  return row_of(kCaseIgnorable, c) != nullptr;
}

// Behind a letter that has a case and before none, whatever is in between that
// does not count (Final_Sigma of the standard's table 3-17).
bool ends_word(const std::u32string& text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  std::size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return before > 0 && is_cased(text[before - 1]) &&
         (after == text.size() || !is_cased(text[after]));
}

}  // namespace

bool is_punctuation(char32_t c) { return row_of(kPunctuation, c) != nullptr; }
bool is_symbol(char32_t c) { return row_of(kSymbols, c) != nullptr; }
bool is_number(char32_t c) { return row_of(kNumbers, c) != nullptr; }
bool is_space(char32_t c) { return row_of(kSpaces, c) != nullptr; }

std::u32string lowered(const std::u32string& text) {
  std::u32string lower;
  lower.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (c == kCapitalSigma) {
      lower += ends_word(text, i) ? kFinalSigma : kSmallSigma;
    } else if (c == kCapitalDottedI) {
      lower += U'i';
      lower += kDotAbove;
    } else {
      lower += simple_lower(c);
    }
  }
  return lower;
}

}  // namespace reformer::unicode
