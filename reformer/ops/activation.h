// What a feed-forward layer does to its inner numbers.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>

#include "reformer/kernels/small_gemm.h"

namespace reformer {

using kernels::Activation;

// LibTorch's word for the formula of kGelu, which all of our kernels have, too.
inline constexpr const char* kGeluApproximation = "tanh";

inline at::Tensor activated(const at::Tensor& x, Activation activation) {
  if (activation == Activation::kNone) return x;
  if (activation == Activation::kGeluErf) return at::gelu(x);
  return activation == Activation::kGelu ? at::gelu(x, kGeluApproximation)
                                         : at::relu(x);
}

inline void activate_in_place(at::Tensor& x, Activation activation) {
  if (activation == Activation::kGelu) at::gelu_(x, kGeluApproximation);
  if (activation == Activation::kGeluErf) at::gelu_(x);
  if (activation == Activation::kRelu) at::relu_(x);
}

}  // namespace reformer
