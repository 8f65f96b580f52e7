#include "reformer/ops/layer_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "reformer/device/device.h"
#include "reformer/kernels/layer_norm.h"

namespace reformer {
namespace {

template <class T>
T* data_of(const at::Tensor& x) {
  return static_cast<T*>(x.mutable_data_ptr());
}

template <class T>
void run(const at::Tensor& x, const NormWeights& norm, const at::Tensor& y,
         const at::Tensor& statistics) {
  const int64_t width = x.size(-1);
  const LaunchGuard launch(x);
  kernels::cuda::layer_norm(
      kernels::LayerNormArgs<T>{
          x.const_data_ptr<float>(), norm.weight.const_data_ptr<float>(),
          norm.bias.const_data_ptr<float>(), data_of<T>(y),
          statistics.mutable_data_ptr<float>(), x.numel() / width, width,
          static_cast<float>(norm.epsilon)},
      launch.stream());
}

template <class T>
void run_grad(const Normed& normed, const at::Tensor& weight,
              const at::Tensor& d_y, const LayerNormGradients& gradients,
              bool add) {
  const auto& x = normed.x;
  const int64_t width = x.size(-1);
  const auto partial =
      at::empty({kernels::kLayerNormPartials, 2, width}, x.options());
  const LaunchGuard launch(x);
  kernels::cuda::layer_norm_grad(
      kernels::LayerNormGradArgs<T>{
          x.const_data_ptr<float>(), weight.const_data_ptr<float>(),
          normed.statistics[0].const_data_ptr<float>(), data_of<const T>(d_y),
          gradients.x.mutable_data_ptr<float>(),
          gradients.weight.mutable_data_ptr<float>(),
          gradients.bias.mutable_data_ptr<float>(),
          partial.mutable_data_ptr<float>(), x.numel() / width, width, add},
      launch.stream());
}

Normed kernel_forward(const at::Tensor& x, const NormWeights& norm,
                      at::ScalarType result) {
  const auto dense = x.contiguous();
  const auto y = at::empty_like(dense, dense.options().dtype(result));
  const auto statistics =
      at::empty({dense.numel() / dense.size(-1), 2}, dense.options());
  result == at::kBFloat16 ? run<kernels::Bf16>(dense, norm, y, statistics)
                          : run<float>(dense, norm, y, statistics);
  return {dense, y, {statistics}};
}

// `gradients` are dense.
void kernel_backward(const Normed& normed, const at::Tensor& weight,
                     const at::Tensor& d_y, const LayerNormGradients& gradients,
                     bool add) {
  const auto dense = d_y.contiguous();
  dense.scalar_type() == at::kBFloat16
      ? run_grad<kernels::Bf16>(normed, weight, dense, gradients, add)
      : run_grad<float>(normed, weight, dense, gradients, add);
}

class LayerNorm : public torch::autograd::Function<LayerNorm> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, double epsilon,
                            at::ScalarType result) {
    const auto normed = kernel_forward(x, {weight, bias, epsilon}, result);
    context->save_for_backward({normed.x, weight, normed.statistics[0]});
    return normed.y;
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list d_outputs) {
    const auto saved = context->get_saved_variables();
    const auto& [x, weight, statistics] =
        std::tie(saved[0], saved[1], saved[2]);
    const LayerNormGradients gradients{
        at::empty_like(x), at::empty_like(weight), at::empty_like(weight)};
    kernel_backward({x, {}, {statistics}}, weight, d_outputs[0], gradients,
                    /*add=*/false);
    return {gradients.x, gradients.weight, gradients.bias, at::Tensor(),
            at::Tensor()};
  }
};

bool has_kernel(const at::Tensor& x, at::ScalarType result) {
  const int64_t width = x.size(-1);
  return x.is_cuda() && x.scalar_type() == at::kFloat &&
         (result == at::kFloat || result == at::kBFloat16) && width % 4 == 0 &&
         width <= kernels::kMaxLayerNormWidth;
}

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const NormWeights& norm,
                      at::ScalarType result) {
  const auto& [weight, bias, epsilon] = norm;
  if (has_kernel(x, result)) {
    return LayerNorm::apply(x, weight, bias, epsilon, result);
  }
  return at::layer_norm(x, {x.size(-1)}, weight, bias, epsilon).to(result);
}

Normed layer_norm_forward(const at::Tensor& x, const NormWeights& norm,
                          at::ScalarType result) {
  if (has_kernel(x, result)) {
    return kernel_forward(x, norm, result);
  }
  const auto dense = x.contiguous();
  const auto [y, mean, scale] = at::native_layer_norm(
      dense, {x.size(-1)}, norm.weight, norm.bias, norm.epsilon);
  return {dense, y.to(result), {mean, scale}};
}

void add_layer_norm_gradients(const Normed& normed, const NormWeights& norm,
                              const at::Tensor& d_y,
                              const LayerNormGradients& sums) {
  const auto& x = normed.x;
  if (has_kernel(x, normed.y.scalar_type())) {
    const auto d_x = sums.x.is_contiguous() ? sums.x : at::zeros_like(x);
    kernel_backward(normed, norm.weight, d_y.to(normed.y.scalar_type()),
                    {d_x, sums.weight, sums.bias}, /*add=*/true);
    if (!d_x.is_same(sums.x)) sums.x.add_(d_x);
    return;
  }
  const auto [d_x, d_weight, d_bias] = at::native_layer_norm_backward(
      d_y.to(x.scalar_type()), x, {x.size(-1)}, normed.statistics[0],
      normed.statistics[1], norm.weight, norm.bias, {true, true, true});
  sums.x.add_(d_x);
  sums.weight.add_(d_weight);
  sums.bias.add_(d_bias);
}

}  // namespace reformer
