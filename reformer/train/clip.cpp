#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <cmath>

#include "reformer/train/chunks.h"
#include "reformer/train/optimizer.h"
#include "reformer/train/optimizer_state.h"

namespace reformer {
namespace {

double norm_of_gradients(std::vector<Parameter>& parameters) {
  double sum = 0;
  for_each_gradient(parameters, [&](auto zero, const at::Tensor& /*value*/,
                                    const at::Tensor& gradient, size_t) {
    const auto* g = gradient.const_data_ptr<decltype(zero)>();
    sum += sum_over_chunks(gradient.numel(), [&](int64_t begin, int64_t end) {
      return sum_of_squares(g + begin, end - begin);
    });
  });
  return std::sqrt(sum);
}

at::Tensor clip_on_device(std::vector<at::Tensor> gradients, double most) {
  const at::NoGradGuard no_grad;
  const auto norm = at::stack(at::_foreach_norm(gradients)).norm();
  if (most > 0) {
    at::_foreach_mul_(gradients, norm.reciprocal().mul_(most).clamp_max_(1));
  }
  return norm.to(at::kDouble);
}

}  // namespace

double clip_gradients(std::vector<Parameter>& parameters, double most) {
  return clip_gradients_async(parameters, most).item<double>();
}

at::Tensor clip_gradients_async(std::vector<Parameter>& parameters,
                                double most) {
  const auto scalar = [](double x) { return at::full({}, x, at::kDouble); };
  if (!parameters.empty() && !parameters[0].value.device().is_cpu()) {
    std::vector<at::Tensor> gradients;
    for (const auto& parameter : parameters) {
      if (parameter.gradient.defined()) gradients.push_back(parameter.gradient);
    }
    return gradients.empty() ? scalar(0)
                             : clip_on_device(std::move(gradients), most);
  }
  const double norm = norm_of_gradients(parameters);
  if (most <= 0 || norm <= most || !std::isfinite(norm)) {
    return scalar(norm);
  }
  for (auto& parameter : parameters) {
    if (parameter.gradient.defined()) parameter.gradient.mul_(most / norm);
  }
  return scalar(norm);
}

}  // namespace reformer
