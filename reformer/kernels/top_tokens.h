// The most probable tokens of rows of logits, and their log-probabilities.
#pragma once

#include <cstdint>

namespace reformer::kernels {

inline constexpr int64_t kMaxTopTokens = 256;

// What is known of a row after some of its vocabulary.
template <class T>
struct TopTokensState {
  T* max;           // [rows]: of the logits; -inf before the first
  T* sum;           // [rows]: of exp(logit - max)
  T* besides;       // [rows]: the logit of the token that is wanted besides
  T* best;          // [rows, k]: logits, the largest first; -inf: none yet
  int32_t* tokens;  // [rows, k]: theirs; the lower one of equals first
};

namespace cpu {

// Goes on with consecutive parts of the vocabulary: a part of the logits stays
// in a cache where all of them would not.
template <class T>
struct TopTokensArgs {
  const T* logits;  // [rows, columns]
  int64_t stride;   // from row to row
  int64_t rows;
  int64_t columns;
  int64_t first_token;  // that of column 0
  int64_t besides;      // the token that is wanted besides
  int64_t k;
  TopTokensState<T> state;
};

void top_tokens(const TopTokensArgs<float>& args);
void top_tokens(const TopTokensArgs<double>& args);

}  // namespace cpu

namespace cuda {

struct TopTokensArgs {
  const float* logits;  // [rows, columns]: all of the vocabulary
  int64_t stride;
  int64_t rows;
  int64_t columns;
  int64_t besides;
  int64_t k;       // up to kMaxTopTokens
  double* result;  // [rows, 2 k + 1]: top_tokens's
};

void top_tokens(const TopTokensArgs& args, void* stream);

}  // namespace cuda

}  // namespace reformer::kernels
