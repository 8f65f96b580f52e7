// Prompts and continuations, as people write and read them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reformer/config/config.h"
#include "reformer/data/text_tokens.h"

namespace reformer::cli {

// Text is bytes or a tokenizer's pieces, images are bytes; the tokens of
// made-up tasks are numbers, separated by spaces or commas.
class TokenWriting {
 public:
  // tokenizer: the run's, null where it has none.
  TokenWriting(const Config& config,
               const std::shared_ptr<const Tokenizer>& tokenizer);

  // Throws Error for what is no token of the model.
  std::vector<int64_t> tokens_of(const std::string& prompt) const;

  // Null: every token is written by itself, whatever stands before it.
  const TextTokens* pieces() const { return pieces_ ? &*pieces_ : nullptr; }
  // Nothing of a token that is no text (task.byte_offset).
  std::string written(int64_t token) const;

  // The tokens that can be written: those below it.
  int64_t count() const;

 private:
  bool bytes_;
  int64_t byte_offset_;
  int64_t vocabulary_;
  std::optional<TextTokens> pieces_;
};

// All of a file, or of standard input where it is "-".
std::string contents_of(const std::string& path);

}  // namespace reformer::cli
