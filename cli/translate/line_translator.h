// Lines of text in one language to lines in another.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reformer/data/tokenizer.h"
#include "reformer/generate/translator.h"

namespace reformer::cli {

struct Translation {
  std::string text;
  double score = 0;            // log_probability / length penalty
  double log_probability = 0;  // of its tokens and the end
  int64_t tokens = 0;          // without the end
};

struct TranslatedLines {
  std::vector<std::string> texts;  // the best of each line
  int64_t tokens = 0;              // of these, with their ends
};

// The model must outlive it and not change.
class LineTranslator {
 public:
  // config.end_token is the tokenizer's. Throws Error for an impossible config,
  // and for a tokenizer that the model does not go with.
  LineTranslator(const EncoderDecoder& model,
                 std::shared_ptr<const Tokenizer> tokenizer,
                 TranslatorConfig config);

  // Told of each line as soon as its translations are known, in any order.
  using Done =
      std::function<void(std::size_t line, const std::vector<Translation>&)>;

  // As Translator::translate. Empty lines, and those of spaces alone, stay
  // empty.
  TranslatedLines translate(const std::vector<std::string>& lines,
                            const Done& done = {},
                            const std::atomic<bool>* stop = nullptr,
                            int64_t first = 0) const;

  // How many tokens a line has; 0 of one that stays empty.
  int64_t tokens_of(const std::string& line) const;

  // How many tokens too many a line has: its end is not read.
  int64_t tokens_too_many(const std::string& line) const;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  Translator translator_;
};

}  // namespace reformer::cli
