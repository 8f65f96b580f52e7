// Which row of a table each n-gram of a sequence falls into.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace reformer {

//   tokens   [batch, context + length] int64, any numbers
//   longest  n of the longest n-gram, at least 2; context = longest - 1: what
//            stood before the first position
//   returns  [batch, length] int64 in [0, rows) for each n from 2 to longest:
//            a hash of a position's token and the n - 1 before it
//
// The sum of tokens times odd constants, modulo 2^64, mixed once more, of which
// the upper half counts: two n-grams share a row as often as chance has it. The
// same on every device. Carries no gradient. Nothing waits for a GPU.
std::vector<at::Tensor> ngram_rows(const at::Tensor& tokens, int64_t longest,
                                   int64_t rows);

}  // namespace reformer
