// Prompts and continuations, as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reformer/config/config.h"

namespace reformer::cli {

// Text and images are bytes; the tokens of made-up tasks are numbers,
// separated by spaces or commas.
class TokenWriting {
 public:
  explicit TokenWriting(const Config& config);

  // Throws Error for what is no token of the model.
  std::vector<int64_t> tokens_of(const std::string& prompt) const;
  std::string written(int64_t token) const;

  // The tokens that can be written: those below it.
  int64_t count() const;

 private:
  bool bytes_;
  int64_t vocabulary_;
};

// All of a file, or of standard input where it is "-".
std::string contents_of(const std::string& path);

}  // namespace reformer::cli
