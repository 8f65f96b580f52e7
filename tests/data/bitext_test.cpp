#include "reformer/data/bitext.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "reformer/base/errors.h"
#include "reformer/data/tokenized_bitext.h"
#include "tests/data/small_tokenizer.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

class BitextTest : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  BitextRequest request(const std::string& data) const {
    return {data, "en", "de", folder_ / "cache"};
  }

  // "source|target" of each pair, with its split's letter before it.
  std::string pairs_of(const std::string& data) const {
    DecodeObserver nobody;
    const auto text = open_bitext(request(data), nobody);
    BitextReader reader(*text);
    std::string all;
    LinePair pair;
    for (size_t i = 0; reader.next(pair); ++i) {
      all += text->labels().at(i);
      all += pair.source + "|" + pair.target + ";";
    }
    return all;
  }

  std::string error_of(const std::string& data) const {
    try {
      return pairs_of(data);
    } catch (const Error& error) {
      return error.what();
    }
  }

  TemporaryFolder folder_;
};

TEST_F(BitextTest, TwoFilesAreReadLineByLine) {
  const auto source = put("a.en", "one\ntwo\tx\n\nfour");
  const auto target = put("b", "eins\r\nzwei\r\ndrei\r\n\r\n");
  EXPECT_EQ(pairs_of(source + "," + target),
            "tone|eins;ttwo\tx|zwei;t|drei;tfour|;");
}

TEST_F(BitextTest, APrefixStandsForBothFiles) {
  put("corpus.en", "\xEF\xBB\xBFone\n");
  put("corpus.de",
      "\xEF\xBB\xBF"
      "eins\n");
  EXPECT_EQ(pairs_of(folder_ / "corpus"), "tone|eins;");
}

TEST_F(BitextTest, ATableHasTabs) {
  EXPECT_EQ(pairs_of(put("t.tsv", "one\teins\ttatoeba\n\tzwei\n")),
            "tone|eins;t|zwei;");
  EXPECT_EQ(error_of(put("t.txt", "one\teins\ntwo zwei\n")),
            "t.txt: line 2 has no tab; the source, a tab and the target are "
            "required");
}

TEST_F(BitextTest, AFolderIsPairedByNames) {
  put("f/train.de", "eins\nzwei\n");
  put("f/train.en", "one\ntwo\n");
  put("f/dev.en.txt", "three\n");
  put("f/dev.en.txt.note", "no bitext\n");
  put("f/dev.de.txt", "drei\n");
  put("f/test_2016_flickr.en", "four\n");
  put("f/test_2016_flickr.de", "vier\n");
  put("f/val/more.de-en.tsv", "fünf\tfive\n");
  put("f/README", "hello\n");
  EXPECT_EQ(pairs_of(folder_ / "f"),
            "vthree|drei;efour|vier;tone|eins;ttwo|zwei;vfive|fünf;");
}

TEST_F(BitextTest, WhatDoesNotFitIsOneSentence) {
  put("g/train.en", "one\ntwo\n");
  EXPECT_EQ(
      error_of(folder_ / "g"),
      (folder_ / "g") + ": train.en has no partner in de of the same name");
  put("g/train.de", "eins\n");
  EXPECT_EQ(error_of(folder_ / "g"),
            "train.en has 2 lines and train.de has 1; as many are required, "
            "line by line translations of each other");
  put("h/README", "hello\n");
  EXPECT_NE(error_of(folder_ / "h").find("no pair of files NAME.en and"),
            std::string::npos);
  EXPECT_NE(error_of(folder_ / "nothing").find("nothing.en is there"),
            std::string::npos);
}

TEST_F(BitextTest, SplitsAreNamed) {
  EXPECT_EQ(bitext_split_named("dev.en"), BitextSplit::kValidation);
  EXPECT_EQ(bitext_split_named("a/dev2010/x.de"), BitextSplit::kValidation);
  EXPECT_EQ(bitext_split_named("val.en"), BitextSplit::kValidation);
  EXPECT_EQ(bitext_split_named("test_2016_flickr.en"), BitextSplit::kTest);
  EXPECT_EQ(bitext_split_named("device.en"), BitextSplit::kTrain);
  EXPECT_EQ(bitext_split_named("newstest2014.en"), BitextSplit::kTrain);
}

TEST_F(BitextTest, TokensOfAPairEndWithTheEnd) {
  SKIP_WITHOUT_SENTENCEPIECE();
  const auto tokenizer = small_tokenizer();
  const auto data = put("p.en", "the house\n\nhill\xFF\na hill\n") + "," +
                    put("p.de", "haus\nberg\nberg\nder berg über\n");
  DecodeObserver nobody;
  const auto text = open_bitext(request(data), nobody);
  for (int time = 0; time < 2; ++time) {  // the second time from the cache
    const auto bitext =
        open_tokenized_bitext(request(data), *text, *tokenizer, nobody);
    EXPECT_EQ(bitext.empty, 1);
    EXPECT_EQ(bitext.invalid, 1);
    ASSERT_EQ(bitext.pairs.size(), 2U);
    EXPECT_EQ(bitext.pairs[0].index, 0);
    EXPECT_EQ(bitext.pairs[1].index, 3);
    std::vector<int32_t> tokens;
    read_pair(*bitext.tokens, bitext.pairs[1], tokens);
    const auto split = bitext.pairs[1].source_length;
    EXPECT_EQ(tokens.at(size_t(split) - 1), tokenizer->end_token());
    EXPECT_EQ(tokens.back(), tokenizer->end_token());
    const std::vector<int64_t> source(tokens.begin(), tokens.begin() + split);
    const std::vector<int64_t> target(tokens.begin() + split, tokens.end());
    EXPECT_EQ(tokenizer->decode(source), "a hill");
    EXPECT_EQ(tokenizer->decode(target), "der berg über");
  }
}

}  // namespace
}  // namespace reformer
