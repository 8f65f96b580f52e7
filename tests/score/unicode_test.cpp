#include "reformer/score/unicode.h"

#include <gtest/gtest.h>

#include "reformer/base/utf8.h"

namespace reformer::unicode {
namespace {

std::string lower(const char* text) {
  return utf8_of(lowered(*code_points(text)));
}

TEST(Unicode, CategoriesAreThoseOfTheStandard) {
  for (const char32_t c : std::u32string(U"!-_«»„…。、")) {
    EXPECT_TRUE(is_punctuation(c)) << uint32_t(c);
  }
  for (const char32_t c : std::u32string(U"$+<^`|~¢€→♥😀")) {
    EXPECT_TRUE(is_symbol(c)) << uint32_t(c);
  }
  for (const char32_t c : std::u32string(U"09²½٣Ⅳ〇")) {
    EXPECT_TRUE(is_number(c)) << uint32_t(c);
  }
  EXPECT_FALSE(is_punctuation(U'$'));
  EXPECT_FALSE(is_symbol(U'.'));
  EXPECT_FALSE(is_number(U'a'));
}

// Python's str.split and str.rstrip take these, Unicode's White_Space not all.
TEST(Unicode, SpacesAreThoseOfPython) {
  int count = 0;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) count += is_space(c);
  EXPECT_EQ(count, 29);
  for (const char32_t c :
       {0x9, 0xD, 0x1C, 0x1F, 0x20, 0x85, 0xA0, 0x1680, 0x2000, 0x200A, 0x2028,
        0x2029, 0x202F, 0x205F, 0x3000}) {
    EXPECT_TRUE(is_space(c)) << uint32_t(c);
  }
  EXPECT_FALSE(is_space(0x200B));
}

TEST(Unicode, LowerCaseKnowsItsExceptions) {
  EXPECT_EQ(lower("GRÜSSE ÀÉÎ ЖЩ ÞØ"), "grüsse àéî жщ þø");
  EXPECT_EQ(lower("ΟΔΟΣ"), "οδος");          // the last one
  EXPECT_EQ(lower("ΣΟΦΟΣ. Σ"), "σοφος. σ");  // alone it is not at an end
  EXPECT_EQ(lower("ΑΣ'Α ΑΣ'"), "ασ'α ας'");  // ' does not count
  EXPECT_EQ(lower("İ"), "i\xCC\x87");        // i and a dot
  EXPECT_EQ(lower("ßẞĲǅ"), "ßßĳǆ");
  EXPECT_EQ(lower("𐐀Ⴀ"), "𐐨ⴀ");
}

}  // namespace
}  // namespace reformer::unicode
