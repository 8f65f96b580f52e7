// BLEU (Papineni et al. 2002) with sacreBLEU's tokenizations and signature
// (Post 2018): what two programs print can be compared.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace reformer {

// 13a is that of NIST's mteval-v13a, which WMT uses: ASCII's punctuation apart.
// intl is that of mteval-v14: Unicode's punctuation and symbols apart.
enum class BleuTokenization { k13a, kIntl };

struct BleuOptions {
  BleuTokenization tokenization = BleuTokenization::k13a;
  bool lowercase = false;
};

struct Bleu {
  static constexpr std::size_t kOrders = 4;  // n-grams of 1 to 4 words

  double score = 0;                          // 0 to 100
  std::array<int64_t, kOrders> correct{};    // n-grams, clipped
  std::array<int64_t, kOrders> total{};      // of the hypotheses
  std::array<double, kOrders> precisions{};  // in percent, smoothed
  double brevity_penalty = 1;
  int64_t hypothesis_length = 0;  // words
  int64_t reference_length = 0;
};

// Of one reference a hypothesis, exponential smoothing, no effective order:
// sacreBLEU's defaults. Throws Error for unequal numbers of lines, for none,
// and for a line that is not UTF-8.
Bleu corpus_bleu(const std::vector<std::string>& hypotheses,
                 const std::vector<std::string>& references,
                 const BleuOptions& options = {});

// The words that n-grams are made of, with one space between two.
std::string bleu_words(const std::string& line, const BleuOptions& options);

// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0": the version of
// sacreBLEU that the tests compare with.
std::string bleu_signature(const BleuOptions& options);

// "57.9/33.1/21.2/14.0 (BP = 1.000 ratio = 1.014 hyp_len = 9 ref_len = 9)"
std::string bleu_details(const Bleu& bleu);

// All of it in a line, as sacreBLEU prints it: with `digits` behind the point.
std::string bleu_line(const Bleu& bleu, const BleuOptions& options, int digits);

}  // namespace reformer
