#include "reformer/ops/layer_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/layer_norm.h>
#include <torch/csrc/autograd/custom_function.h>

#include "reformer/kernels/layer_norm.h"
#include "reformer/ops/device.h"

namespace reformer {
namespace {

template <class T>
T* data_of(const at::Tensor& x) {
  return static_cast<T*>(x.mutable_data_ptr());
}

template <class T>
void run(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
         const at::Tensor& y, const at::Tensor& statistics) {
  const int64_t width = x.size(-1);
  kernels::cuda::layer_norm(
      kernels::LayerNormArgs<T>{
          x.const_data_ptr<float>(), weight.const_data_ptr<float>(),
          bias.const_data_ptr<float>(), data_of<T>(y),
          statistics.mutable_data_ptr<float>(), x.numel() / width, width},
      current_stream(x));
}

template <class T>
void run_grad(const at::Tensor& x, const at::Tensor& weight,
              const at::Tensor& statistics, const at::Tensor& d_y,
              const at::Tensor& d_x, const at::Tensor& d_weight,
              const at::Tensor& d_bias) {
  const int64_t width = x.size(-1);
  const auto partial =
      at::empty({kernels::kLayerNormPartials, 2, width}, x.options());
  kernels::cuda::layer_norm_grad(
      kernels::LayerNormGradArgs<T>{
          x.const_data_ptr<float>(), weight.const_data_ptr<float>(),
          statistics.const_data_ptr<float>(), data_of<const T>(d_y),
          d_x.mutable_data_ptr<float>(), d_weight.mutable_data_ptr<float>(),
          d_bias.mutable_data_ptr<float>(), partial.mutable_data_ptr<float>(),
          x.numel() / width, width},
      current_stream(x));
}

class LayerNorm : public torch::autograd::Function<LayerNorm> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, at::ScalarType result) {
    const auto dense = x.contiguous();
    const auto y = at::empty_like(dense, dense.options().dtype(result));
    const auto statistics =
        at::empty({dense.numel() / dense.size(-1), 2}, dense.options());
    result == at::kBFloat16
        ? run<kernels::Bf16>(dense, weight, bias, y, statistics)
        : run<float>(dense, weight, bias, y, statistics);
    context->save_for_backward({dense, weight, statistics});
    return y;
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list d_outputs) {
    const auto saved = context->get_saved_variables();
    const auto& [x, weight, statistics] =
        std::tie(saved[0], saved[1], saved[2]);
    const auto d_y = d_outputs[0].contiguous();
    const auto d_x = at::empty_like(x);
    const auto d_weight = at::empty_like(weight);
    const auto d_bias = at::empty_like(weight);
    d_y.scalar_type() == at::kBFloat16
        ? run_grad<kernels::Bf16>(x, weight, statistics, d_y, d_x, d_weight,
                                  d_bias)
        : run_grad<float>(x, weight, statistics, d_y, d_x, d_weight, d_bias);
    return {d_x, d_weight, d_bias, at::Tensor()};
  }
};

bool has_kernel(const at::Tensor& x, at::ScalarType result) {
  const int64_t width = x.size(-1);
  return x.is_cuda() && x.scalar_type() == at::kFloat &&
         (result == at::kFloat || result == at::kBFloat16) && width % 4 == 0 &&
         width <= kernels::kMaxLayerNormWidth;
}

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight,
                      const at::Tensor& bias, at::ScalarType result) {
  if (has_kernel(x, result)) return LayerNorm::apply(x, weight, bias, result);
  return at::layer_norm(x, {x.size(-1)}, weight, bias,
                        kernels::kLayerNormEpsilon)
      .to(result);
}

}  // namespace reformer
