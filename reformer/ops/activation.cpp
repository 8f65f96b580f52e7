#include "reformer/ops/activation.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/square.h>

namespace reformer {

at::Tensor activated(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kGelu:
      return at::gelu(x, kGeluApproximation);
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kGeluErf:
      return at::gelu(x);
    case Activation::kReluSquared: {
      // In place, for its memory, but where autograd keeps it.
      const auto positive = at::relu(x);
      return positive.requires_grad() ? at::square(positive)
                                      : positive.square_();
    }
  }
  return x;
}

void activate_in_place(at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return;
    case Activation::kGelu:
      at::gelu_(x, kGeluApproximation);
      return;
    case Activation::kRelu:
      at::relu_(x);
      return;
    case Activation::kGeluErf:
      at::gelu_(x);
      return;
    case Activation::kReluSquared:
      at::square_(at::relu_(x));
      return;
  }
}

}  // namespace reformer
