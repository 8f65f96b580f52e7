// Texts of many lines as tokens of a tokenizer, which knows one line.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reformer/data/tokenizer.h"

namespace reformer {

// Each line's tokens, and between two lines a token that stands for the end of
// the first: the tokenizer's piece for "\n", or its byte piece <0x0A>, or where
// it has neither its end token.
class TextTokens {
 public:
  // Throws Error for a tokenizer that has none of these.
  explicit TextTokens(std::shared_ptr<const Tokenizer> tokenizer);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  int64_t end_of_line() const { return end_of_line_; }
  // Whether a line's first piece begins with a space that is not in the line.
  bool adds_space() const { return adds_space_; }

  std::vector<int64_t> encode(std::string_view text) const;
  std::string decode(std::span<const int64_t> tokens) const;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  int64_t end_of_line_;
  bool adds_space_;
};

// A text that is written token by token. Of characters in bytes the last may be
// incomplete until the next token.
class TokenWriter {
 public:
  // at_line_begin: nothing stands before it, or the end of a line.
  explicit TokenWriter(const TextTokens& tokens, bool at_line_begin = true)
      : tokens_(&tokens), at_line_begin_(at_line_begin) {}

  // What the token adds to the text.
  std::string add(int64_t token);

 private:
  const TextTokens* tokens_;
  bool at_line_begin_;
};

}  // namespace reformer
