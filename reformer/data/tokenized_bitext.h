// Bitext as tokens, made once: the second time its cache is there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reformer/data/bitext.h"
#include "reformer/data/tokenizer.h"

namespace reformer {

// A pair of lines that both have tokens.
struct TokenizedPair {
  int64_t place;  // of its tokens in the payload: the source's, then the
                  // target's, each with its end token
  int32_t index;  // of the pair among all lines
  int32_t source_length;  // tokens
  int32_t target_length;
};

struct TokenizedBitext {
  std::shared_ptr<const CacheFile> tokens;
  std::vector<TokenizedPair> pairs;  // in the order of the lines
  int64_t empty = 0;                 // pairs left out: a side without a token,
  int64_t invalid = 0;               // or a line that is not UTF-8
};

// `text` is what open_bitext opened by the same request. Throws Error for a
// tokenizer without an end token.
TokenizedBitext open_tokenized_bitext(const BitextRequest& request,
                                      const CacheFile& text,
                                      const Tokenizer& tokenizer,
                                      DecodeObserver& observer);

// The source's tokens and then the target's, as many as `out` is long.
void read_pair(const CacheFile& tokens, const TokenizedPair& pair,
               std::vector<int32_t>& out);

}  // namespace reformer
