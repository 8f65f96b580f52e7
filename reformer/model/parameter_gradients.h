// What a backward pass that is written out adds to the gradients of parameters.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros_like.h>

#include "reformer/ops/layer_norm.h"
#include "reformer/ops/matmul.h"

namespace reformer {

// The gradient of a parameter, to be added to.
inline at::Tensor gradient_sum(const at::Tensor& parameter) {
  auto& gradient = parameter.mutable_grad();
  if (!gradient.defined()) gradient = at::zeros_like(parameter);
  return gradient;
}

// Of y = x W^T: x [rows, width], d_y [rows, outputs].
inline void add_weight_gradient(const at::Tensor& weight, const at::Tensor& x,
                                const at::Tensor& d_y) {
  auto& gradient = weight.mutable_grad();
  if (gradient.defined()) {
    add_matmul(gradient, d_y.t(), x);
  } else {
    gradient = matmul(d_y.t(), x, weight.scalar_type());
  }
}

// Of y = x W^T + bias.
inline void add_bias_gradient(const at::Tensor& bias, const at::Tensor& d_y) {
  gradient_sum(bias).add_(d_y.sum({0}, /*keepdim=*/false, bias.scalar_type()));
}

// Of layer_norm(x), and of its input to d_x.
inline void add_norm_gradients(const Normed& normed, const NormWeights& norm,
                               const at::Tensor& d_y, const at::Tensor& d_x) {
  add_layer_norm_gradients(
      normed, norm, d_y,
      {d_x, gradient_sum(norm.weight), gradient_sum(norm.bias)});
}

}  // namespace reformer
