#include "reformer/optim/clip.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <cmath>

#include "reformer/base/chunks.h"
#include "reformer/optim/optimizer.h"

namespace reformer {
namespace {

at::Tensor scalar(double x) { return at::full({}, x, at::kDouble); }

template <class T>
double sum_of_all_squares(const at::Tensor& gradient) {
  const T* g = gradient.const_data_ptr<T>();
  return sum_over_chunks(gradient.numel(), [&](int64_t begin, int64_t end) {
    return sum_of_squares(g + begin, end - begin);
  });
}

bool on_cpu(const std::vector<at::Tensor>& tensors) {
  return tensors.empty() || tensors[0].device().is_cpu();
}

std::vector<at::Tensor> gradients_of(const std::vector<Parameter>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : parameters) {
    if (parameter.gradient().defined())
      gradients.push_back(parameter.gradient());
  }
  return gradients;
}

}  // namespace

// On a CPU the sums of squares, on a GPU the norms.
std::vector<at::Tensor> norm_parts(const std::vector<at::Tensor>& gradients) {
  if (!on_cpu(gradients)) return at::_foreach_norm(gradients);
  std::vector<at::Tensor> parts;
  for (const auto& gradient : gradients) {
    const auto dense = gradient.contiguous();
    parts.push_back(scalar(dense.scalar_type() == at::kDouble
                               ? sum_of_all_squares<double>(dense)
                               : sum_of_all_squares<float>(dense)));
  }
  return parts;
}

at::Tensor norm_of(const std::vector<at::Tensor>& parts) {
  if (!on_cpu(parts)) return at::stack(parts).norm().to(at::kDouble);
  double sum = 0;
  for (const auto& part : parts) sum += part.item<double>();
  return scalar(std::sqrt(sum));
}

void scale_gradients(std::vector<at::Tensor> gradients, const at::Tensor& norm,
                     double most) {
  if (gradients.empty() || most <= 0) return;
  const at::NoGradGuard no_grad;
  if (!norm.device().is_cpu()) {
    at::_foreach_mul_(
        gradients, norm.reciprocal().mul_(most).clamp_max_(1).to(at::kFloat));
    return;
  }
  const double value = norm.item<double>();
  if (value <= most || !std::isfinite(value)) return;
  for (auto& gradient : gradients) gradient.mul_(most / value);
}

at::Tensor clip_gradients(std::vector<Parameter>& parameters, double most) {
  const auto gradients = gradients_of(parameters);
  const auto norm = norm_of(norm_parts(gradients));
  scale_gradients(gradients, norm, most);
  return norm;
}

}  // namespace reformer
