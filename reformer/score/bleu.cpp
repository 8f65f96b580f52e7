#include "reformer/score/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "reformer/base/errors.h"
#include "reformer/base/parallel.h"

namespace reformer {
namespace {

constexpr char kComparedVersion[] = "2.6.0";
constexpr size_t kOrders = Bleu::kOrders;

using Words = std::vector<int32_t>;
using NGram = std::array<int32_t, kOrders>;  // -1 where it is shorter
using Counts = std::map<NGram, int64_t>;

// The words of a pair of lines as numbers.
class Numbering {
 public:
  Words of(const std::string& words) {
    Words numbers;
    std::istringstream rest(words);
    for (std::string word; std::getline(rest, word, ' ');) {
      const auto next = static_cast<int32_t>(known_.size());
      numbers.push_back(known_.try_emplace(word, next).first->second);
    }
    return numbers;
  }

 private:
  std::unordered_map<std::string, int32_t> known_;
};

Counts ngrams_of(const Words& words) {
  Counts counts;
  for (size_t i = 0; i < words.size(); ++i) {
    NGram ngram;
    ngram.fill(-1);
    for (size_t n = 0; n < kOrders && i + n < words.size(); ++n) {
      ngram[n] = words[i + n];
      ++counts[ngram];
    }
  }
  return counts;
}

size_t order_of(const NGram& ngram) {
  return size_t(std::find(ngram.begin(), ngram.end(), -1) - ngram.begin());
}

// Correct and total n-grams, and the lengths, of one line.
Bleu line_counts(const std::string& hypothesis, const std::string& reference,
                 const BleuOptions& options) {
  Numbering numbering;
  const Words words = numbering.of(bleu_words(hypothesis, options));
  const Words wanted = numbering.of(bleu_words(reference, options));
  const Counts there = ngrams_of(wanted);
  Bleu line;
  line.hypothesis_length = std::ssize(words);
  line.reference_length = std::ssize(wanted);
  for (const auto& [ngram, count] : ngrams_of(words)) {
    const size_t n = order_of(ngram) - 1;
    line.total[n] += count;
    const auto found = there.find(ngram);
    if (found != there.end()) {
      line.correct[n] += std::min(count, found->second);
    }
  }
  return line;
}

// A zero's logarithm: small enough that any score with it is 0.
double log_of(double x) { return x == 0 ? -9999999999.0 : std::log(x); }

// Where no n-gram of an order is right, half of one is, of the next such order
// a quarter (Chen and Cherry 2014, method 3).
void smooth(Bleu& bleu) {
  double halving = 1;
  for (size_t n = 0; n < kOrders && bleu.total[n] > 0; ++n) {
    if (bleu.correct[n] == 0) halving *= 2;
    bleu.precisions[n] =
        bleu.correct[n] == 0
            ? 100.0 / (halving * double(bleu.total[n]))
            : 100.0 * double(bleu.correct[n]) / double(bleu.total[n]);
  }
}

void take_score(Bleu& bleu) {
  const auto made = double(bleu.hypothesis_length);
  const auto wanted = double(bleu.reference_length);
  if (made < wanted) {
    bleu.brevity_penalty = made > 0 ? std::exp(1 - wanted / made) : 0;
  }
  const bool any = std::any_of(bleu.correct.begin(), bleu.correct.end(),
                               [](int64_t count) { return count != 0; });
  if (!any) return;
  smooth(bleu);
  double logs = 0;
  for (const double precision : bleu.precisions) logs += log_of(precision);
  bleu.score = bleu.brevity_penalty * std::exp(logs / double(kOrders));
}

std::string printed(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

}  // namespace

Bleu corpus_bleu(const std::vector<std::string>& hypotheses,
                 const std::vector<std::string>& references,
                 const BleuOptions& options) {
  require(hypotheses.size() == references.size(),
          "bleu: as many references as hypotheses are required, got ",
          references.size(), " for ", hypotheses.size());
  require(!hypotheses.empty(), "bleu: at least one line is required, got none");
  std::vector<Bleu> lines(hypotheses.size());
  parallel_tasks(std::ssize(lines), [&](int64_t task) {
    const auto i = static_cast<size_t>(task);
    try {
      lines[i] = line_counts(hypotheses[i], references[i], options);
    } catch (const Error& error) {
      throw Error(error.what() + std::string(", line ") +
                  std::to_string(i + 1) + " is not");
    }
  });
  Bleu bleu;
  for (const auto& line : lines) {
    bleu.hypothesis_length += line.hypothesis_length;
    bleu.reference_length += line.reference_length;
    for (size_t n = 0; n < kOrders; ++n) {
      bleu.correct[n] += line.correct[n];
      bleu.total[n] += line.total[n];
    }
  }
  take_score(bleu);
  return bleu;
}

std::string bleu_signature(const BleuOptions& options) {
  const bool intl = options.tokenization == BleuTokenization::kIntl;
  return std::string("nrefs:1|case:") + (options.lowercase ? "lc" : "mixed") +
         "|eff:no|tok:" + (intl ? "intl" : "13a") +
         "|smooth:exp|version:" + kComparedVersion;
}

std::string bleu_details(const Bleu& bleu) {
  std::string text;
  for (const double precision : bleu.precisions) {
    if (!text.empty()) text += '/';
    text += printed("%.1f", precision);
  }
  const double ratio =
      bleu.reference_length == 0
          ? 0
          : double(bleu.hypothesis_length) / double(bleu.reference_length);
  return text + " (BP = " + printed("%.3f", bleu.brevity_penalty) +
         " ratio = " + printed("%.3f", ratio) +
         " hyp_len = " + std::to_string(bleu.hypothesis_length) +
         " ref_len = " + std::to_string(bleu.reference_length) + ")";
}

std::string bleu_line(const Bleu& bleu, const BleuOptions& options,
                      int digits) {
  const std::string format = "%." + std::to_string(digits) + "f";
  return "BLEU|" + bleu_signature(options) + " = " +
         printed(format.c_str(), bleu.score) + " " + bleu_details(bleu);
}

}  // namespace reformer
