#include "reformer/tasks/toy_language.h"

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "reformer/base/errors.h"
#include "reformer/data/row_key.h"
#include "reformer/data/shuffle.h"

namespace reformer {
namespace {

constexpr std::string_view kConsonants = "bdfghklmnprt";
constexpr std::string_view kVowels = "aeiou";

// Two letters for each of 60 numbers.
std::string syllable(int64_t number) {
  const auto consonants = std::ssize(kConsonants);
  return {kConsonants[size_t(number % consonants)],
          kVowels[size_t(number / consonants % std::ssize(kVowels))]};
}

std::string source_word(int64_t number) {
  return syllable(number % 60) + syllable((number / 60 + 7 * number) % 60);
}

std::string target_word(int64_t number) {
  const std::string word = source_word(number);
  return {word.rbegin(), word.rend()};
}

class ToyLanguage : public Tokenizer {
 public:
  explicit ToyLanguage(int64_t words) : pieces_{"<unk>", "<unused>", "</s>"} {
    for (int64_t i = 0; i < words; ++i) pieces_.push_back(source_word(i));
    for (int64_t i = 0; i < words; ++i) pieces_.push_back(target_word(i));
    for (size_t i = 0; i < pieces_.size(); ++i) {
      tokens_.emplace(pieces_[i], static_cast<int64_t>(i));
    }
  }

  int64_t vocabulary_size() const override { return std::ssize(pieces_); }

  std::vector<int64_t> encode(std::string_view line) const override {
    std::vector<int64_t> tokens;
    std::istringstream rest{std::string(line)};
    for (std::string word; rest >> word;) {
      const int64_t token = token_of(word);
      tokens.push_back(token >= kFirstToyWord ? token : unknown_token());
    }
    return tokens;
  }

  std::string decode(std::span<const int64_t> tokens) const override {
    std::string line;
    for (const int64_t token : tokens) {
      const std::string bytes = bytes_of(token);
      if (!line.empty() || !bytes.starts_with(' ')) {
        line += bytes;
      } else {
        line += bytes.substr(1);
      }
    }
    return line;
  }

  std::string piece(int64_t token) const override {
    require(token >= 0 && token < vocabulary_size(),
            "tokenizer: tokens from 0 to ", vocabulary_size() - 1,
            " are required, got ", token);
    return pieces_[size_t(token)];
  }

  std::string bytes_of(int64_t token) const override {
    const std::string word = piece(token);
    if (token == unknown_token()) return " ?";
    return token < kFirstToyWord ? std::string() : ' ' + word;
  }

  int64_t token_of(std::string_view piece) const override {
    const auto found = tokens_.find(std::string(piece));
    return found == tokens_.end() ? -1 : found->second;
  }

  int64_t unknown_token() const override { return 0; }
  int64_t begin_token() const override { return -1; }
  int64_t end_token() const override { return kToyEnd; }
  const std::string& file() const override { return file_; }

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int64_t> tokens_;
  std::string file_;
};

}  // namespace

std::shared_ptr<const Tokenizer> toy_language(int64_t words) {
  return std::make_shared<ToyLanguage>(words);
}

std::vector<int64_t> toy_translation(const std::vector<int64_t>& source,
                                     int64_t words) {
  const auto key = row_key(/*seed=*/0, Draw::kToyWords, /*index=*/0, 0);
  std::vector<int64_t> target;
  for (auto token = source.rbegin(); token != source.rend(); ++token) {
    const int64_t word = *token - kFirstToyWord;
    const bool known = word >= 0 && word < words;
    target.push_back(known ? kFirstToyWord + words + shuffled(word, words, key)
                           : *token);
  }
  return target;
}

}  // namespace reformer
