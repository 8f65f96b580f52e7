// Activations on the way back.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/ops/activation.h"

namespace reformer {

//   d     [rows, width]  the gradient of activated(x); becomes x's, in place
//   x     [rows, width]  of d's type; of what keeps_result(): activated(x)
//   sums  [width]        that gradient summed over rows is added: a bias's
//
// Without autograd. On a GPU one kernel for bfloat16 (contiguous, widths that
// are multiples of 8; sums float32), which adds numbers up before it rounds
// them, with the same bits every time; else LibTorch's.
void activation_gradient(const at::Tensor& d, const at::Tensor& x,
                         const at::Tensor& sums, Activation activation);

}  // namespace reformer
