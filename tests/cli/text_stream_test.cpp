#include "cli/generate/text_stream.h"

#include <gtest/gtest.h>

#include "reformer/base/utf8.h"

namespace reformer::cli {
namespace {

struct Streamed {
  std::vector<std::string> shown;  // after each byte
  std::string all;
  std::string stop;
};

// Byte by byte, as a model of bytes writes.
Streamed streamed(const std::string& text, std::vector<std::string> stops) {
  TextStream stream(std::move(stops));
  Streamed result;
  for (const char byte : text) {
    result.shown.push_back(stream.add({&byte, 1}));
    result.all += result.shown.back();
  }
  result.all += stream.finish();
  result.stop = stream.stopped_by().value_or("");
  return result;
}

TEST(TextStream, PassesOnTextAsItComes) {
  const auto result = streamed("abc", {});
  EXPECT_EQ(result.shown, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(result.stop, "");
}

TEST(TextStream, ShowsWholeCharactersOnly) {
  const auto result = streamed("é語😀", {});
  EXPECT_EQ(result.shown,
            (std::vector<std::string>{"", "é", "", "", "語", "", "", "", "😀"}));
  for (const std::string cut : {"x\xC3", "x\xE8\xAA", "x\xF0\x9F\x98"}) {
    EXPECT_EQ(streamed(cut, {}).all, "x");
  }
}

TEST(TextStream, PassesOnBytesThatBeginNoCharacter) {
  for (const std::string bytes :
       {"\xFF", "\x80", "\xC0\x80", "\xE0\x80", "\xED\xA0\x80",
        "\xF4\x90\x80\x80", "\xC3(", "\xE8\xAA\xC3\xA9"}) {
    EXPECT_EQ(streamed(bytes, {}).all, bytes);
  }
  EXPECT_EQ(streamed("\xE0\x80", {}).shown.back(), "\xE0\x80");
}

TEST(TextStream, EndsBeforeAStopStringHoweverItIsCut) {
  const std::string text = "one two\n\nthree";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    TextStream stream({"\n\n"});
    auto all = stream.add(text.substr(0, cut));
    all += stream.add(text.substr(cut));
    all += stream.finish();
    EXPECT_EQ(all, "one two") << cut;
    EXPECT_EQ(stream.stopped_by(), "\n\n");
    EXPECT_EQ(stream.add("more"), "");
  }
  EXPECT_EQ(streamed(text, {"\n\n"}).all, "one two");
}

TEST(TextStream, HoldsBackWhatMayBecomeAStopString) {
  const auto result = streamed("aabaabaac", {"aabaac"});
  EXPECT_EQ(result.all, "aab");
  EXPECT_EQ(result.stop, "aabaac");
  EXPECT_EQ(streamed("aabaa", {"aabaac"}).all, "aabaa");  // it never came
}

TEST(TextStream, OfSeveralTheOneThatEndsFirstThenTheLongest) {
  for (const std::vector<std::string>& stops :
       {std::vector<std::string>{"abcd", "bc", "abc"}, {"abc", "bc", "abcd"}}) {
    TextStream whole(stops);
    EXPECT_EQ(whole.add("xabcd"), "x");
    EXPECT_EQ(whole.stopped_by(), "abc");
    const auto result = streamed("xabcd", stops);
    EXPECT_EQ(result.all, "x");
    EXPECT_EQ(result.stop, "abc");
  }
}

TEST(TextStream, DropsACutCharacterBeforeAStopString) {
  EXPECT_EQ(streamed("a\xE8\xAA!", {"!"}).all, "a");
}

TEST(CutCharacter, IsTheBeginningOfOne) {
  EXPECT_EQ(cut_character_size(""), 0u);
  EXPECT_EQ(cut_character_size("a"), 0u);
  EXPECT_EQ(cut_character_size("é"), 0u);
  EXPECT_EQ(cut_character_size("a\xC3"), 1u);
  EXPECT_EQ(cut_character_size("\xF0\x9F\x98"), 3u);
  EXPECT_EQ(cut_character_size("\x80\x80\x80\x80"), 0u);
}

}  // namespace
}  // namespace reformer::cli
