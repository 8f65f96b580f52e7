#include "reformer/data/text_tokens.h"

#include <gtest/gtest.h>

#include "tests/data/small_tokenizer.h"

namespace reformer {
namespace {

class TextTokensTest : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_SENTENCEPIECE(); }
};

const std::vector<std::string>& texts() {
  static const std::vector<std::string> all = {
      "",
      "\n",
      "the house",
      "the house\n",
      "\n\nthe\n\n house\n",
      "  a\n b  \n\tc\r\nGröße 日本\n"};
  return all;
}

TEST_F(TextTokensTest, TextsComeBackAsTheyWere) {
  const TextTokens tokens(small_tokenizer());
  EXPECT_EQ(tokens.tokenizer().piece(tokens.end_of_line()), "<0x0A>");
  for (const auto& text : texts()) {
    EXPECT_EQ(tokens.decode(tokens.encode(text)), text);
  }
}

TEST_F(TextTokensTest, WrittenTokenByTokenIsTheSame) {
  const TextTokens tokens(small_tokenizer());
  for (const auto& text : texts()) {
    TokenWriter writer(tokens);
    std::string written;
    for (const int64_t token : tokens.encode(text)) {
      written += writer.add(token);
    }
    EXPECT_EQ(written, text);
  }
}

// What goes on within a line begins with its space.
TEST_F(TextTokensTest, OnlyALineBeginsWithoutItsSpace) {
  const TextTokens tokens(small_tokenizer());
  const auto token = tokens.encode("house")[0];
  EXPECT_EQ(TokenWriter(tokens, /*at_line_begin=*/true).add(token), "house");
  EXPECT_EQ(TokenWriter(tokens, /*at_line_begin=*/false).add(token), " house");
}

}  // namespace
}  // namespace reformer
