// What `reformer translate` prints of each line, in the order of the lines.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/translate/line_translator.h"

namespace reformer::cli {

struct TranslationStyle {
  bool json = false;
  bool several = false;  // --n-best: a line of number, score, text each
};

// Lines are known in any order, and printed as soon as all before them are.
class TranslationPrinter {
 public:
  explicit TranslationPrinter(const TranslationStyle& style) : style_(style) {}

  // line: counted from 0. Throws as `print`.
  void add(int64_t line, const std::string& source,
           const std::vector<Translation>& translations);

  int64_t printed() const { return next_; }  // lines

 private:
  std::string rendered(int64_t line, const std::string& source,
                       const std::vector<Translation>& translations) const;

  TranslationStyle style_;
  int64_t next_ = 0;
  std::map<int64_t, std::string> waiting_;  // for lines before them
};

}  // namespace reformer::cli
