// Buckets of n-grams: positions whose last inputs are the same.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/config/config.h"

namespace reformer {

// A round of LSH attention for each n of lsh.ngrams, whose buckets are told by
// the inputs instead of by what a layer makes of them: the same for all layers
// and heads. What stood where the same n inputs stood before is found from the
// first step on, and no training moves it away.
class NgramBuckets {
 public:
  explicit NgramBuckets(const Config& config);

  // Inputs before a position that its buckets depend on; 0 without n-grams.
  int64_t context() const { return context_; }

  //   inputs   [batch, context + length] int64
  //   returns  [batch, n-grams, length] uint16; undefined without n-grams
  at::Tensor of(const at::Tensor& inputs) const;

 private:
  std::vector<int64_t> lengths_;
  int64_t context_ = 0;
  int64_t n_buckets_;
};

// buckets [batch, heads, rounds, length], and after them the rounds of `ngrams`
// [batch, n-grams, length], which may be undefined. uint16.
at::Tensor append_ngrams(const at::Tensor& buckets, const at::Tensor& ngrams);

}  // namespace reformer
