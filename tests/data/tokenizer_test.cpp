#include "reformer/data/tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/data/small_tokenizer.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

class TokenizerTest : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_SENTENCEPIECE(); }
};

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// A piece of a model file: a Protobuf message in another.
std::string piece_field(const std::string& text, const std::string& type = "") {
  const auto field = [](const std::string& bytes) {
    return '\x0A' + std::string(1, static_cast<char>(bytes.size())) + bytes;
  };
  return field(field(text) + std::string("\x15\0\0\0\0", 5) + type);
}

TEST_F(TokenizerTest, EveryLineComesBackAsItWas) {
  const auto unigram =
      parse_tokenizer(trained(small_lines(), {PieceKind::kUnigram, 290}), "u");
  for (const auto& tokenizer : {small_tokenizer(), unigram}) {
    for (const std::string line :
         {"the house", "", " ", "   ", "  two before", "two after  ", "a  b",
          "\ttab", "日本語 😀", "e\xCC\x81", "\xC2\xA0nbsp", "\x01\x7F",
          "<s> </s> <unk> <0x41>", "GRÖSSE 12,345.67 % — „so“"}) {
      const auto tokens = tokenizer->encode(line);
      EXPECT_EQ(tokenizer->decode(tokens), line);
      std::string bytes;
      for (const int64_t token : tokens) bytes += tokenizer->bytes_of(token);
      EXPECT_EQ(bytes, line.empty() ? "" : " " + line) << line;
    }
  }
}

TEST_F(TokenizerTest, PiecesAreLearnt) {
  const auto tokenizer = small_tokenizer();
  EXPECT_EQ(tokenizer->vocabulary_size(), 330);
  EXPECT_EQ(tokenizer->encode("the garden").size(), 2U);
  EXPECT_EQ(tokenizer->piece(tokenizer->encode("the")[0]), "▁the");
  EXPECT_EQ(tokenizer->token_of("▁the"), tokenizer->encode("the")[0]);
  EXPECT_EQ(tokenizer->token_of("▁nowhere"), -1);
}

TEST_F(TokenizerTest, ControlTokensStandForNothing) {
  const auto tokenizer = small_tokenizer();
  EXPECT_EQ(tokenizer->unknown_token(), 0);
  EXPECT_EQ(tokenizer->begin_token(), 1);
  EXPECT_EQ(tokenizer->end_token(), 2);
  EXPECT_EQ(tokenizer->bytes_of(2), "");
  auto tokens = tokenizer->encode("the house");
  tokens.push_back(2);
  EXPECT_EQ(tokenizer->decode(tokens), "the house");
}

TEST_F(TokenizerTest, IsTheSameForTheSameLines) {
  for (const auto kind : {PieceKind::kBpe, PieceKind::kUnigram}) {
    const auto model = trained(small_lines(), {kind, 290});
    EXPECT_EQ(model, trained(small_lines(), {kind, 290}));
    EXPECT_EQ(parse_tokenizer(model, "m")->file(), model);
  }
}

TEST_F(TokenizerTest, TokensThatAreNoneAreRefused) {
  const auto tokenizer = small_tokenizer();
  for (const int64_t wrong : {int64_t{-1}, int64_t{330}, int64_t{1} << 40}) {
    const std::vector<int64_t> tokens = {wrong};
    EXPECT_EQ(error_of([&] { tokenizer->decode(tokens); }),
              "tokenizer: tokens from 0 to 329 are required, got " +
                  std::to_string(wrong));
    EXPECT_THROW(tokenizer->bytes_of(wrong), Error);
  }
}

TEST_F(TokenizerTest, AFileThatIsNoneIsAnErrorWithItsName) {
  const TemporaryFolder folder;
  const std::string& model = small_model();
  for (const std::string& bytes :
       {std::string("hello\n"), model.substr(0, model.size() / 2),
        std::string(4096, '\0'), std::string("\x0A\x02\x0A")}) {
    const std::string path = folder / "a.model";
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_TRUE(error_of([&] {
                  load_tokenizer(path);
                }).starts_with(path + ": a SentencePiece model is required"))
        << error_of([&] { load_tokenizer(path); });
  }
  EXPECT_NE(error_of([&] { load_tokenizer(folder / "none"); }).find("none"),
            std::string::npos);
  EXPECT_EQ(load_tokenizer([&] {
              const std::string path = folder / "b.model";
              std::ofstream(path, std::ios::binary) << model;
              return path;
            }())
                ->file(),
            model);
}

TEST_F(TokenizerTest, PiecesWithAZeroByteAreRefused) {
  const std::string unknown = piece_field("<unk>", "\x18\x02");
  EXPECT_EQ(parse_tokenizer(unknown + piece_field("ab"), "m")->piece(1), "ab");
  const auto error_with = [&](const std::string& piece) {
    return error_of(
        [&] { parse_tokenizer(unknown + piece_field(piece), "m"); });
  };
  for (const auto& piece : {std::string("\0", 1), std::string("\0b", 2)}) {
    EXPECT_EQ(error_with(piece).find("m: a SentencePiece model is required ("),
              0U);
  }
  EXPECT_EQ(error_with(std::string("a\0b", 3)),
            "m: pieces without zero bytes are required, number 1 has one");
}

TEST_F(TokenizerTest, AVocabularyMustFitTheText) {
  const auto too_large = [](bool or_fewer) {
    return trained(small_lines(), {PieceKind::kBpe, 32000, or_fewer});
  };
  EXPECT_NE(error_of([&] { too_large(false); }).find("32000 pieces"),
            std::string::npos);
  const auto fewer = parse_tokenizer(too_large(true), "fewer");
  EXPECT_LT(fewer->vocabulary_size(), 1000);
  EXPECT_EQ(fewer->decode(fewer->encode("über den berg")), "über den berg");
  EXPECT_THROW(trained(small_lines(), {PieceKind::kBpe, 100}), Error);
  EXPECT_THROW(trained({}, {PieceKind::kBpe, 300}), Error);
}

TEST_F(TokenizerTest, WhatTheLinesThrowArrives) {
  struct Stop {};
  int64_t lines = 0;
  EXPECT_THROW(train_tokenizer(
                   [&](std::string& line) {
                     line = "the house";
                     if (++lines == 10) throw Stop();
                     return true;
                   },
                   {}),
               Stop);
}

}  // namespace
}  // namespace reformer
