// GELU, in its tanh approximation, on the way back.
#pragma once

#include <ATen/core/Tensor.h>

namespace reformer {

//   d     [rows, width]  the gradient of GELU(x); becomes that of x, in place
//   x     [rows, width]  of d's type
//   sums  [width]        that gradient summed over rows is added: a bias's
//
// Without autograd. On a GPU one kernel for bfloat16 (contiguous, widths that
// are multiples of 8; sums float32), which adds numbers up before it rounds
// them, with the same bits every time; else LibTorch's.
void gelu_gradient(const at::Tensor& d, const at::Tensor& x,
                   const at::Tensor& sums);

}  // namespace reformer
