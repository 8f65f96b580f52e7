// A text as tokens, made once: the second time its cache is there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reformer/data/bytes.h"
#include "reformer/data/cache.h"
#include "reformer/data/text_tokens.h"

namespace reformer {

// A stretch of the text.
struct TokenizedPart {
  int64_t begin = 0;  // in tokens
  int64_t size = 0;
  int64_t bytes = 0;  // of the text that they stand for
};

struct TokenizedText {
  std::shared_ptr<const Bytes> tokens;  // int32 each
  std::vector<TokenizedPart> parts;     // one more than there were cuts
  int64_t unknown = 0;                  // tokens that stand for no text
  int64_t invalid = 0;                  // lines that are not UTF-8
};

// Reads tokens [begin, begin + out.size()).
void read_tokens(const Bytes& tokens, int64_t begin, std::span<int64_t> out);

// What open_text opens (`text` is it), as tokens, in parts. A part ends at the
// first end of a line from its cut on, in bytes of the text, or where there is
// none within 4 KiB at the first end of a character. Cuts ascend. Where the
// tokenizer lacks pieces or lines are not UTF-8, `observer` is warned: the
// tokens then say less than the text.
TokenizedText open_tokenized(const std::string& path, const Bytes& text,
                             const TextTokens& tokens,
                             const std::vector<int64_t>& cuts,
                             const std::string& cache_folder,
                             DecodeObserver& observer);

}  // namespace reformer
