#include "reformer/ops/activation_gradient.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/threshold_backward.h>

#include <algorithm>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/kernels/activation_gradient.h"

namespace reformer {
namespace {

// Contiguous tensors of the allocator start at a multiple of 16 bytes, parts
// that begin within them need not.
bool fits(const at::Tensor& x) {
  return x.is_cuda() && x.scalar_type() == at::kBFloat16 && x.is_contiguous() &&
         x.size(1) % 8 == 0 &&
         reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

// So many at a time, for the memory of what lies between.
constexpr int64_t kRows = 256;

void multiply_by_slope(const at::Tensor& d, const at::Tensor& x,
                       Activation activation) {
  at::Tensor to = d;
  switch (activation) {
    case Activation::kNone:
      return;
    case Activation::kGelu:
      at::gelu_backward_out(to, d, x, kGeluApproximation);
      return;
    case Activation::kRelu:
      at::threshold_backward_out(to, d, x, 0);
      return;
    case Activation::kGeluErf:
      at::gelu_backward_out(to, d, x);
      return;
    case Activation::kReluSquared:
      for (int64_t row = 0; row < d.size(0); row += kRows) {
        const int64_t rows = std::min(kRows, d.size(0) - row);
        to.narrow(0, row, rows).mul_(x.narrow(0, row, rows).sqrt()).mul_(2);
      }
      return;
  }
}

}  // namespace

void activation_gradient(const at::Tensor& d, const at::Tensor& x,
                         const at::Tensor& sums, Activation activation) {
  require(
      d.dim() == 2 && x.sizes() == d.sizes() && sums.dim() == 1 &&
          sums.size(0) == d.size(1),
      "activation_gradient: x must have the sizes of d, and sums a number for "
      "each column, got ",
      d.sizes(), ", ", x.sizes(), " and ", sums.sizes());
  if (fits(d) && fits(x) && sums.scalar_type() == at::kFloat &&
      sums.is_contiguous()) {
    const auto partial =
        at::empty({kernels::kActivationPartials, d.size(1)}, sums.options());
    const LaunchGuard launch(d);
    return kernels::cuda::activation_gradient(
        {static_cast<const kernels::Bf16*>(x.const_data_ptr()),
         static_cast<kernels::Bf16*>(d.mutable_data_ptr()),
         sums.mutable_data_ptr<float>(), partial.mutable_data_ptr<float>(),
         d.size(0), d.size(1), activation},
        launch.stream());
  }
  multiply_by_slope(d, x, activation);
  sums.add_(d.sum({0}, /*keepdim=*/false, sums.scalar_type()));
}

}  // namespace reformer
