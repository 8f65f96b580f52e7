#include "reformer/ops/short_convolution.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <type_traits>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/kernels/short_convolution.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kOp = "short_convolution";

template <class T>
using Weight = typename kernels::ConvolutionWeight<T>::Type;

at::ScalarType weight_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

void check_weight(const at::Tensor& weight, const at::Tensor& x) {
  require(weight.dim() == 3 && weight.size(0) >= 1 &&
              weight.size(0) <= kMostConvolutionTaps &&
              weight.size(1) == x.size(1) && weight.size(2) == x.size(3),
          kOp, ": weight must be [1 to ", kMostConvolutionTaps, ", ", x.size(1),
          ", ", x.size(3), "], got sizes ", weight.sizes());
  require(
      weight.scalar_type() == weight_type(x) && weight.device() == x.device(),
      kOp, ": weight must be ", at::toString(weight_type(x)), " on ",
      x.device().str(), ", got ", at::toString(weight.scalar_type()), " on ",
      weight.device().str());
}

kernels::ConvolutionShape shape_of(const at::Tensor& x,
                                   const at::Tensor& weight) {
  return {x.size(0), x.size(1), x.size(2), x.size(3), weight.size(0)};
}

// Calls run, a template of the rows' type, with it.
template <class Run>
void with_type(const at::Tensor& x, const Run& run) {
  switch (x.scalar_type()) {
    case at::kDouble:
      return run.template operator()<double>();
    case at::kBFloat16:
      return run.template operator()<kernels::Bf16>();
    default:
      return run.template operator()<float>();
  }
}

struct Convolve {
  static void on_cpu(const auto& args) {
    kernels::cpu::short_convolution(args);
  }
  static void on_cuda(const auto& args, const at::Tensor& x) {
    const LaunchGuard launch(x);
    kernels::cuda::short_convolution(args, launch.stream());
  }
};
struct GoBack {
  static void on_cpu(const auto& args) {
    kernels::cpu::short_convolution_grad(args);
  }
  static void on_cuda(const auto& args, const at::Tensor& x) {
    const LaunchGuard launch(x);
    kernels::cuda::short_convolution_grad(args, launch.stream());
  }
};
struct ConvolveNext {
  static void on_cpu(const auto& args) { kernels::cpu::next_convolution(args); }
  static void on_cuda(const auto& args, const at::Tensor& x) {
    const LaunchGuard launch(x);
    kernels::cuda::next_convolution(args, launch.stream());
  }
};

// On the device of x, which T is possible on.
template <class Kernel, class T>
void run(const at::Tensor& x, const auto& args) {
  if constexpr (!std::is_same_v<T, kernels::Bf16>) {
    if (x.is_cpu()) return Kernel::on_cpu(args);
  }
  if constexpr (!std::is_same_v<T, double>) {
    Kernel::on_cuda(args, x);
  }
}

class ShortConvolution : public torch::autograd::Function<ShortConvolution> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& x, const at::Tensor& weight) {
    context->save_for_backward({x, weight});
    const auto rows = with_contiguous_rows(x);
    const auto y = empty_rows_like(rows);
    const auto filters = weight.contiguous();
    with_type(x, [&]<class T>() {
      run<Convolve, T>(
          x, kernels::ShortConvolutionArgs<T>{
                 rows_of<T>(rows), mutable_rows_of<T>(y),
                 filters.const_data_ptr<Weight<T>>(), shape_of(x, weight)});
    });
    return y;
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list d_outputs) {
    const auto saved = context->get_saved_variables();
    const auto& x = saved[0];
    const auto& weight = saved[1];
    const auto rows = with_contiguous_rows(x);
    const auto d = with_contiguous_rows(d_outputs[0]);
    const auto d_x = empty_rows_like(rows);
    const auto filters = weight.contiguous();
    const auto d_weight = at::empty(weight.sizes(), weight.options());
    const auto partial = at::empty(
        {kernels::kConvolutionPartials, weight.numel()}, weight.options());
    with_type(x, [&]<class T>() {
      run<GoBack, T>(
          x, kernels::ConvolutionGradArgs<T>{
                 rows_of<T>(rows), rows_of<T>(d), mutable_rows_of<T>(d_x),
                 filters.const_data_ptr<Weight<T>>(),
                 partial.mutable_data_ptr<Weight<T>>(),
                 d_weight.mutable_data_ptr<Weight<T>>(), shape_of(x, weight)});
    });
    return {d_x, d_weight};
  }
};

}  // namespace

at::Tensor short_convolution(const at::Tensor& x, const at::Tensor& weight) {
  check_vectors(kOp, "x", x);
  check_weight(weight, x);
  return ShortConvolution::apply(x, weight);
}

at::Tensor next_convolution(const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& recent) {
  check_vectors(kOp, "x", x);
  check_weight(weight, x);
  const std::vector<int64_t> sizes = {x.size(0), x.size(1), weight.size(0),
                                      x.size(3)};
  require(x.size(2) == 1 && recent.sizes() == sizes && recent.is_contiguous() &&
              recent.scalar_type() == x.scalar_type() &&
              recent.device() == x.device(),
          kOp, ": one position and contiguous recent ones ",
          at::IntArrayRef(sizes), " as x are required, got ", x.sizes(),
          " and ", recent.sizes());
  const auto rows = with_contiguous_rows(x);
  const auto y = at::empty(x.sizes(), x.options());
  const auto filters = weight.contiguous();
  with_type(x, [&]<class T>() {
    run<ConvolveNext, T>(
        x, kernels::NextConvolutionArgs<T>{
               rows_of<T>(rows), mutable_rows_of<T>(y),
               static_cast<T*>(recent.mutable_data_ptr()),
               filters.const_data_ptr<Weight<T>>(), shape_of(x, weight)});
  });
  return y;
}

}  // namespace reformer
