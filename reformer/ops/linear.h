// Matmuls with the matrices of a layer: of many rows by the library, of the
// few that generating has by kernels that do all around them too.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/ops/activation.h"
#include "reformer/ops/layer_norm.h"

namespace reformer {

struct LinearWeights {
  at::Tensor weight;  // [outputs, width]
  at::Tensor bias;    // [outputs]; undefined: none
};

//   x        [..., width]
//   returns  [..., outputs] of x's type: activation(x W^T + bias)
//
// Matrices of another type are converted every time. Differentiable. By packed
// copies where such are in use (ops/packed_matrices.h).
at::Tensor linear(const at::Tensor& x, const LinearWeights& matrix,
                  Activation activation = Activation::kNone);

// What norm_linear computes with, and what its results are of.
struct LinearTypes {
  at::ScalarType compute = at::kFloat;
  at::ScalarType result = at::kFloat;
};

//   x        [..., width] float32 or float64
//   returns  [..., outputs] of each matrix: activation(LN(x) W^T + bias)
//
// Matrices that are not of type `compute` are converted every time.
// Differentiable. Without gradients up to 8 rows on a GPU take one kernel.
std::vector<at::Tensor> norm_linear(const at::Tensor& x,
                                    const NormWeights& norm,
                                    const std::vector<LinearWeights>& matrices,
                                    const LinearTypes& types,
                                    Activation activation = Activation::kNone);

// y += x W^T + bias, without gradients; up to 8 rows on a GPU take one kernel.
//
//   x  [..., width], of the type to compute with
//   y  [..., outputs] float32 or float64
void add_linear(const at::Tensor& x, const LinearWeights& matrix,
                const at::Tensor& y);

// y += scale (x W^T + bias), likewise, but by the library whatever the number
// of rows: what is added with scale 1 is taken away with scale -1 to the bit of
// the matmul.
void add_linear_exactly(const at::Tensor& x, const LinearWeights& matrix,
                        const at::Tensor& y, double scale);

}  // namespace reformer
