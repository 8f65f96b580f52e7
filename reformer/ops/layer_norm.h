// Layer norm over the last dimension, its result in the type that the products
// after it take.
#pragma once

#include <ATen/core/Tensor.h>

namespace reformer {

//   x             [..., width]  float32 or float64
//   weight, bias  [width]       of x's type
//   returns       [..., width]  of type `result`
//
// Differentiable in all three; gradients are of x's type. On a GPU one kernel
// each way that rounds as it writes (widths that are multiples of 4 up to
// 2048), with the same bits every time; else LibTorch's, then a conversion.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight,
                      const at::Tensor& bias, at::ScalarType result);

}  // namespace reformer
