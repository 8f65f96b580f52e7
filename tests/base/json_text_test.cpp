#include "reformer/base/json_text.h"

#include <gtest/gtest.h>

namespace reformer {
namespace {

using Json = nlohmann::ordered_json;

std::string error_with(const std::string& text, const JsonLimits& limits = {}) {
  try {
    parse_json<Json>(text, limits);
  } catch (const JsonError& error) {
    return error.what();
  }
  return "";
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(JsonText, IsWhatNlohmannMakesOfIt) {
  for (const char* text : {"1", "null", "\"x\"", "[]", "{}", "[1,[2,{}],\"3\"]",
                           R"({"b":{"a":[1.5,true]},"a":{"a":null}})"}) {
    EXPECT_EQ(parse_json<Json>(text), Json::parse(text)) << text;
    EXPECT_EQ(parse_json<nlohmann::json>(text), nlohmann::json::parse(text));
  }
}

TEST(JsonText, IsAsDeepAsTheLimitAndNoDeeper) {
  for (const auto& [open, close] : {std::pair("[", "]"), {"{\"a\":", "}"}}) {
    const auto nested = [&open = open, &close = close](int depth) {
      return repeated(open, depth) + "1" + repeated(close, depth);
    };
    EXPECT_EQ(error_with(nested(64)), "");
    EXPECT_NE(error_with(nested(65)), "");
  }
}

TEST(JsonText, AHundredThousandLevelsAreOneSentence) {
  EXPECT_EQ(error_with(repeated("[", 100000)), "nested deeper than 64 levels");
  EXPECT_EQ(error_with(repeated("[", 100000) + repeated("]", 100000)),
            "nested deeper than 64 levels");
  EXPECT_EQ(error_with(repeated("{\"a\":", 100000)).substr(0, 50),
            "nested deeper than 64 levels at the key 'a.a.a.a.a");
}

TEST(JsonText, IsAsWideAsTheLimitsAndNoWider) {
  const JsonLimits limits{64, 2, 3};
  EXPECT_EQ(error_with(R"({"a":[1,[],{}],"b":{"a":1,"b":2}})", limits), "");
  EXPECT_EQ(error_with(R"({"a":1,"b":2,"c":3})", limits),
            "more than 2 members in one object");
  for (const char* last : {"4", "[]", "{}"}) {
    EXPECT_EQ(error_with(std::string(R"({"x":[1,2,3,)") + last + "]}", limits),
              "more than 3 elements in one list at the key 'x'");
  }
}

TEST(JsonText, FaultsNameTheirPlaceInOneShortSentence) {
  EXPECT_EQ(error_with(""), "no valid JSON at line 1, column 1");
  EXPECT_EQ(error_with("{\"a\": {\n \"b\": x}}"),
            "no valid JSON at line 2, column 7 at the key 'a.b'");
  EXPECT_EQ(error_with(std::string("[1]\0]", 5)),
            "no valid JSON at line 1, column 4");
  EXPECT_EQ(error_with("[1] // no comment"),
            "no valid JSON at line 1, column 5");
  EXPECT_EQ(error_with(R"({"a":1,"a":2})"), "the key 'a' is given twice");
  EXPECT_EQ(error_with(R"({"a":{"b":-1e999}})"),
            "the number -1e999 at the key 'a.b' is too large");
  EXPECT_LT(error_with("[1e" + repeated("9", 10000) + "]").size(), 100u);
  EXPECT_LT(error_with(R"({")" + repeated("k", 10000) + R"(":})").size(), 120u);
  EXPECT_EQ(error_with("\"\xff\""), "no valid JSON at line 1, column 2");
}

TEST(JsonText, ExcerptsAreShortAndOfWholeCharacters) {
  EXPECT_EQ(excerpt(Json::parse(R"({"a": [1, "x\ny"]})")),
            R"({"a":[1,"x\ny"]})");
  EXPECT_EQ(excerpt(Json("\xff")), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(shortened(repeated("a", 60)), repeated("a", 60));
  EXPECT_EQ(shortened(repeated("a", 61)), repeated("a", 60) + "...");
  const std::string odd = repeated("a", 1);
  EXPECT_EQ(shortened(odd + repeated("\xc3\xa9", 40)),
            odd + repeated("\xc3\xa9", 29) + "...");
  EXPECT_EQ(shortened(repeated("\xf0\x9f\x98\x80", 40)),
            repeated("\xf0\x9f\x98\x80", 15) + "...");
  EXPECT_EQ(shortened(repeated("\x80", 100)).size(), 59u);  // no characters
}

}  // namespace
}  // namespace reformer
