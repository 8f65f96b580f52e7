// What a feed-forward layer does to its inner elements.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/kernels/activation.h"

namespace reformer {

using kernels::Activation;

// LibTorch's word for the formula of kGelu, which all of our kernels have, too.
inline constexpr const char* kGeluApproximation = "tanh";

// Whether its gradient is taken from what it returned, so that what it was
// given need not be kept.
constexpr bool keeps_result(Activation activation) {
  return activation == Activation::kRelu ||
         activation == Activation::kReluSquared;
}

at::Tensor activated(const at::Tensor& x, Activation activation);
void activate_in_place(at::Tensor& x, Activation activation);

}  // namespace reformer
