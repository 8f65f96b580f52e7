// Layer norm over the last dimension, its result in the type that the matmuls
// after it take.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace reformer {

struct NormWeights {
  at::Tensor weight;      // [width]
  at::Tensor bias;        // [width]
  double epsilon = 1e-5;  // added to the variance
};

//   x        [..., width]  float32 or float64
//   norm     weight and bias of x's type
//   returns  [..., width]  of type `result`
//
// Differentiable in all three; gradients are of x's type. On a GPU one kernel
// each way that rounds as it writes (widths that are multiples of 4 up to
// 2048), with the same bits every time; else LibTorch's, then a conversion.
at::Tensor layer_norm(const at::Tensor& x, const NormWeights& norm,
                      at::ScalarType result);

// The same in two halves, without autograd, for a backward pass that is
// written out.
struct Normed {
  at::Tensor x;                        // dense
  at::Tensor y;                        // of type `result`
  std::vector<at::Tensor> statistics;  // of rows: the kernel's or LibTorch's
};
Normed layer_norm_forward(const at::Tensor& x, const NormWeights& norm,
                          at::ScalarType result);

// Adds the gradients of x, weight and bias to `sums`, which are of their sizes
// and types. The kernel adds as it writes: a pass over memory less.
struct LayerNormGradients {
  at::Tensor x;
  at::Tensor weight;
  at::Tensor bias;
};
void add_layer_norm_gradients(const Normed& normed, const NormWeights& norm,
                              const at::Tensor& d_y,
                              const LayerNormGradients& sums);

}  // namespace reformer
