// Golden values are what sacreBLEU 2.6.0 prints of the same lines
// (tests/python/bleu_test.py compares with it where it is).
#include "reformer/score/bleu.h"

#include <gtest/gtest.h>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

using Lines = std::vector<std::string>;

constexpr BleuOptions k13a = {BleuTokenization::k13a, false};
constexpr BleuOptions kIntl = {BleuTokenization::kIntl, false};
constexpr BleuOptions k13aLowercase = {BleuTokenization::k13a, true};
constexpr BleuOptions kIntlLowercase = {BleuTokenization::kIntl, true};

// Without the signature.
std::string score(const Lines& hypotheses, const Lines& references,
                  const BleuOptions& options) {
  const auto line = bleu_line(corpus_bleu(hypotheses, references, options),
                              options, /*digits=*/10);
  return line.substr(line.find(" = ") + 3);
}

TEST(Bleu, IsSacreBleusOnSentences) {
  const Lines hypotheses = {"The cat sat on the mat.",
                            "It's 3.5% of $1,000 - isn't it?", "Und nun?"};
  const Lines references = {"The cat is on the mat.",
                            "It is 3.5% of $1,000, isn't it?", "Und jetzt?"};
  EXPECT_EQ(score(hypotheses, references, k13a),
            "46.0663166350 80.0/58.8/42.9/27.3 (BP = 0.951 ratio = 0.952 "
            "hyp_len = 20 ref_len = 21)");
  EXPECT_EQ(score(hypotheses, references, kIntl),
            "50.8803551923 79.2/57.1/44.4/33.3 (BP = 1.000 ratio = 1.043 "
            "hyp_len = 24 ref_len = 23)");
}

TEST(Bleu, IsSacreBleusOnUnicode) {
  const Lines hypotheses = {"„Größe“ – 5 €/m² … 1.000,50", "ΟΔΟΣ ΣΑΣ, İstanbul",
                            "２０１４年。 x→y"};
  const Lines references = {"„Größe“ — 5 €/m² … 1.000,5",
                            "οδος σας , i\xCC\x87stanbul", "２０１４年。 x→ y"};
  EXPECT_EQ(score(hypotheses, references, k13a),
            "37.3778040721 57.1/36.4/37.5/33.3 (BP = 0.931 ratio = 0.933 "
            "hyp_len = 14 ref_len = 15)");
  EXPECT_EQ(score(hypotheses, references, kIntl),
            "56.1199509503 73.7/62.5/53.8/40.0 (BP = 1.000 ratio = 1.000 "
            "hyp_len = 19 ref_len = 19)");
  EXPECT_EQ(score(hypotheses, references, k13aLowercase),
            "58.5374732167 78.6/63.6/62.5/50.0 (BP = 0.931 ratio = 0.933 "
            "hyp_len = 14 ref_len = 15)");
  EXPECT_EQ(score(hypotheses, references, kIntlLowercase),
            "70.8266927468 89.5/81.2/69.2/50.0 (BP = 1.000 ratio = 1.000 "
            "hyp_len = 19 ref_len = 19)");
}

TEST(Bleu, IsSacreBleusOnEntitiesAndPoints) {
  const Lines hypotheses = {
      "&quot;A &amp; B&quot; &lt;skipped> <skipped>c d e f", "1-2 3,4 a-b 5.",
      "x.y,z 7.,8"};
  const Lines references = {"\"A & B\" <skipped> c d e f", "1 - 2 3,4 a-b 5 .",
                            "x . y , z 7. , 8"};
  EXPECT_EQ(score(hypotheses, references, k13a),
            "79.3540896577 89.3/84.0/77.3/68.4 (BP = 1.000 ratio = 1.120 "
            "hyp_len = 28 ref_len = 25)");
  EXPECT_EQ(score(hypotheses, references, kIntl),
            "47.6738648747 60.5/51.4/43.8/37.9 (BP = 1.000 ratio = 1.267 "
            "hyp_len = 38 ref_len = 30)");
}

TEST(Bleu, IsSacreBleusOnAlmostNothing) {
  EXPECT_EQ(score({"", "a b c d e", ""}, {"x y", "a b c d e", ""}, k13a),
            "67.0320046036 100.0/100.0/100.0/100.0 (BP = 0.670 ratio = 0.714 "
            "hyp_len = 5 ref_len = 7)");
  EXPECT_EQ(score({"Haus"}, {"Haus"}, k13a),
            "0.0000000000 100.0/0.0/0.0/0.0 (BP = 1.000 ratio = 1.000 hyp_len "
            "= 1 ref_len = 1)");
  EXPECT_EQ(score({""}, {""}, k13a),
            "0.0000000000 0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 0.000 hyp_len = "
            "0 ref_len = 0)");
  EXPECT_EQ(score({"...!?", "- , ."}, {"...!?", "-- , ."}, k13a),
            "85.9947657063 87.5/83.3/75.0/100.0 (BP = 1.000 ratio = 1.000 "
            "hyp_len = 8 ref_len = 8)");
  EXPECT_EQ(score({"...!?", "- , ."}, {"...!?", "-- , ."}, kIntl),
            "88.2496902585 100.0/100.0/100.0/100.0 (BP = 0.882 ratio = 0.889 "
            "hyp_len = 8 ref_len = 9)");
}

TEST(Bleu, SpacesOfUnicodeSeparateWords) {
  EXPECT_EQ(bleu_words("a\u00a0b\u2028c\x1c"
                       "d e  ",
                       k13a),
            "a b c d e");
}

// Each neighbour is in one substitution only, from left to right.
TEST(Bleu, PointsStayInNumbersAlone) {
  EXPECT_EQ(bleu_words("1.5 a.b 1. .5 a..b", k13a),
            "1.5 a . b 1 . . 5 a . . b");
  EXPECT_EQ(bleu_words("7.,8 1-2 a-b", k13a), "7 . , 8 1 - 2 a-b");
  EXPECT_EQ(bleu_words("im Jahr 2014.", kIntl), "im Jahr 2014.");
  EXPECT_EQ(bleu_words("im Jahr 2014.", k13a), "im Jahr 2014 .");
}

TEST(Bleu, TheSignatureSaysHow) {
  EXPECT_EQ(bleu_signature(k13a),
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
  EXPECT_EQ(bleu_signature(kIntlLowercase),
            "nrefs:1|case:lc|eff:no|tok:intl|smooth:exp|version:2.6.0");
}

TEST(Bleu, RefusesWhatCannotBeCompared) {
  EXPECT_THROW(corpus_bleu({"a"}, {"a", "b"}), Error);
  EXPECT_THROW(corpus_bleu({}, {}), Error);
  try {
    corpus_bleu({"a", "b\xFF"}, {"a", "b"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "bleu: text in UTF-8 is required, line 2 is not");
  }
}

}  // namespace
}  // namespace reformer
