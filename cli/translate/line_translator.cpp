#include "cli/translate/line_translator.h"

#include <algorithm>

#include "reformer/base/errors.h"

namespace reformer::cli {
namespace {

TranslatorConfig with_end(TranslatorConfig config, const EncoderDecoder& model,
                          const Tokenizer& tokenizer) {
  const int64_t vocabulary = model.config().model.vocabulary;
  require(tokenizer.vocabulary_size() == vocabulary, "the tokenizer has ",
          tokenizer.vocabulary_size(), " pieces, the model a vocabulary of ",
          vocabulary, ": it is another model's");
  require(tokenizer.end_token() >= 0,
          "the tokenizer has no end token, by which a translation ends");
  config.end_token = tokenizer.end_token();
  return config;
}

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t\r\n") == std::string::npos;
}

}  // namespace

LineTranslator::LineTranslator(const EncoderDecoder& model,
                               std::shared_ptr<const Tokenizer> tokenizer,
                               TranslatorConfig config)
    : tokenizer_(std::move(tokenizer)),
      translator_(model, with_end(config, model, *tokenizer_)) {}

int64_t LineTranslator::tokens_of(const std::string& line) const {
  return is_blank(line) ? 0 : std::ssize(tokenizer_->encode(line));
}

int64_t LineTranslator::tokens_too_many(const std::string& line) const {
  // A token is at least a byte.
  if (std::ssize(line) <= translator_.most_source()) return 0;
  return std::max<int64_t>(
      0, std::ssize(tokenizer_->encode(line)) - translator_.most_source());
}

TranslatedLines LineTranslator::translate(const std::vector<std::string>& lines,
                                          const Done& done,
                                          const std::atomic<bool>* stop,
                                          int64_t first) const {
  std::vector<std::vector<int64_t>> sources;
  for (const auto& line : lines) {
    sources.push_back(is_blank(line) ? std::vector<int64_t>()
                                     : tokenizer_->encode(line));
  }
  TranslatedLines all;
  all.texts.resize(lines.size());
  const auto finish = [&](std::size_t line,
                          const std::vector<Hypothesis>& best) {
    std::vector<Translation> translations;
    for (const auto& [tokens, log_probability, score] : best) {
      translations.push_back({tokenizer_->decode(tokens), score,
                              log_probability, std::ssize(tokens)});
    }
    if (!translations.empty()) all.texts[line] = translations[0].text;
    if (done) done(line, translations);
  };
  all.tokens = translator_.translate(sources, finish, stop, first).tokens;
  return all;
}

}  // namespace reformer::cli
