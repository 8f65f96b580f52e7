#include "reformer/data/tokenized_text.h"

#include <gtest/gtest.h>

#include <fstream>

#include "reformer/data/byte_file.h"
#include "tests/data/small_tokenizer.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

class TokenizedTextTest : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_SENTENCEPIECE(); }

  TokenizedText opened(const std::string& text, std::vector<int64_t> cuts) {
    const std::string path = folder_ / "text";
    std::ofstream(path, std::ios::binary) << text;
    const ByteFile file(path);
    return open_tokenized(path, file, tokens(), cuts, folder_ / "cache",
                          observer_);
  }

  static const TextTokens& tokens() {
    static const TextTokens all(small_tokenizer());
    return all;
  }

  static std::string part(const TokenizedText& text, size_t number) {
    const auto& [begin, size, bytes] = text.parts.at(number);
    std::vector<int64_t> read(static_cast<size_t>(size));
    read_tokens(*text.tokens, begin, read);
    return tokens().decode(read);
  }

  struct Warnings : DecodeObserver {
    void warned(const std::string& sentence) override { all += sentence; }
    std::string all;
  };

  TemporaryFolder folder_;
  Warnings observer_;
};

TEST_F(TokenizedTextTest, PartsEndWithLinesAndHoldEverything) {
  std::string text;
  for (const auto& line : small_lines()) text += line + "\n";
  const auto size = static_cast<int64_t>(text.size());
  const auto opened_text = opened(text, {size / 2, size * 3 / 4});
  ASSERT_EQ(opened_text.parts.size(), 3U);
  std::string all;
  for (size_t i = 0; i < 3; ++i) {
    const std::string lines = part(opened_text, i);
    EXPECT_TRUE(lines.ends_with('\n'));
    EXPECT_EQ(std::ssize(lines), opened_text.parts[i].bytes);
    all += lines;
  }
  EXPECT_EQ(all, text);
  EXPECT_GE(opened_text.parts[0].bytes, size / 2);
  EXPECT_LT(opened_text.parts[0].bytes, size / 2 + 100);
  EXPECT_EQ(observer_.all, "");
}

// Without an end of a line nearby a character ends.
TEST_F(TokenizedTextTest, LongLinesAreCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 30000; ++i) text += "ü";
  const auto opened_text = opened(text, {30001});
  EXPECT_EQ(opened_text.parts[0].bytes, 30002);
  EXPECT_EQ(part(opened_text, 0) + part(opened_text, 1), text);
}

// Longer than what is read at a time, and than a line may be.
TEST_F(TokenizedTextTest, LinesOfMegabytesAreReadInPieces) {
  std::string text((4 << 20) + 99999, 'x');
  for (size_t i = 0; i < text.size(); i += 7) text[i] = ' ';
  text += "\nend";
  const auto opened_text = opened(text, {});
  EXPECT_EQ(opened_text.parts.at(0).bytes, std::ssize(text));
  EXPECT_TRUE(part(opened_text, 0).ends_with("\nend"));
}

TEST_F(TokenizedTextTest, TheSecondTimeItsCacheIsThere) {
  const auto first = opened("the house\n", {});
  const auto second = opened("the house\n", {});
  EXPECT_EQ(second.tokens->content_hash(), first.tokens->content_hash());
  EXPECT_EQ(part(second, 0), "the house\n");
  EXPECT_EQ(part(opened("the hill\n", {}), 0), "the hill\n");
}

TEST_F(TokenizedTextTest, WhatIsNoTextIsSaid) {
  const auto text = opened("the \xFF house\nhill\n", {});
  EXPECT_EQ(text.invalid, 1);
  EXPECT_NE(observer_.all.find("1 lines are not UTF-8"), std::string::npos);
  EXPECT_EQ(text.parts[0].bytes, 17);
}

}  // namespace
}  // namespace reformer
