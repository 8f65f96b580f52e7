// The most probable tokens of rows of logits: log-softmax and the choice of the
// largest in one pass.
#pragma once

#include <ATen/core/Tensor.h>

namespace reformer {

//   logits   [rows, vocabulary]  float32 or float64, on CUDA float32
//   k        1 to the vocabulary, at most 256
//   besides  a token whose log-probability is wanted in any case
//   returns  [rows, 2 k + 1] float64 on the logits' device: the log-
//            probabilities of the k most probable tokens, the largest first;
//            these tokens; the log-probability of `besides`
//
// The lower one of equally probable tokens comes first. A row that holds NaN
// or +inf, or nothing but -inf, has NaN for all its log-probabilities. One
// tensor: whoever wants it on the CPU waits for one small copy. No gradient.
at::Tensor top_tokens(const at::Tensor& logits, int64_t k, int64_t besides);

// The same on the CPU of logits that come in parts of the vocabulary, one after
// the other from token 0 on.
class TopTokens {
 public:
  TopTokens(int64_t rows, int64_t k, int64_t besides, at::ScalarType type);

  void add(const at::Tensor& logits);  // [rows, n]
  at::Tensor result() const;           // once all were added

 private:
  int64_t k_;
  int64_t besides_;
  int64_t seen_ = 0;  // tokens
  at::Tensor max_;    // [rows], and so on: kernels::TopTokensState
  at::Tensor sum_;
  at::Tensor besides_logit_;
  at::Tensor best_;  // [rows, k]
  at::Tensor tokens_;
};

}  // namespace reformer
