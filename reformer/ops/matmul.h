// Matmuls whose results are of a wider type than the matrices, or
// are added to what there is.
#pragma once

#include <ATen/core/Tensor.h>

namespace reformer {

//   a        [rows, width], transposed or not
//   b        [width, columns], likewise, of a's type
//   returns  [rows, columns] of type `result`
//
// Without gradients. On a GPU a matmul of bfloat16 matrices is not rounded on
// its way to float32.
at::Tensor matmul(const at::Tensor& a, const at::Tensor& b,
                  at::ScalarType result);

// sum += scale a b, likewise: the matmul adds as it writes.
void add_matmul(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b,
                double scale = 1);

// The rows of a tensor [..., width].
at::Tensor as_matrix(const at::Tensor& x);

}  // namespace reformer
