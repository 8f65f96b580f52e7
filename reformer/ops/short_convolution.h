// Short causal convolutions of queries, keys and values, column by column: what
// a position is together with the few before it (Poli et al., Hyena, arXiv
// 2302.10866, and most that came after it).
#pragma once

#include <ATen/core/Tensor.h>

namespace reformer {

//   x        [batch, heads, length, d_head], as the attentions take it
//   weight   [taps, heads, d_head] float32, float64 where x is; 1 to 4 taps
//   returns  as x: y_i = x_i + sum over t = 1 .. taps of weight_t x_(i-t),
//   where
//            nothing stands before the first position; differentiable in both
//
// Exactly causal. The gradient of the weights is added up in a fixed order.
at::Tensor short_convolution(const at::Tensor& x, const at::Tensor& weight);

//   x       [batch, heads, 1, d_head]: the next position of each row
//   recent  [batch, heads, taps, d_head]: the x before it, the last one first;
//           x becomes the first of them
//   returns  as x, no gradient: the last position of short_convolution of all
at::Tensor next_convolution(const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& recent);

}  // namespace reformer
