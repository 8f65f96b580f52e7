#include "reformer/train/muon.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <map>
#include <tuple>

#include "reformer/core/errors.h"
#include "reformer/train/optimizer_state.h"

namespace reformer {
namespace {

// Of the polynomial that pushes singular values in (0, 1] fastest towards 1.
constexpr double kLinear = 3.4445;
constexpr double kCubic = -4.7750;
constexpr double kQuintic = 2.0315;
constexpr int kIterations = 5;

// The size of an element of Adam's steps, as found in training.
constexpr double kElement = 0.2;

bool is_matrix(const Parameter& parameter) {
  return block_of(parameter.name) >= 0 && parameter.value.dim() == 2;
}

std::vector<Parameter> others(const std::vector<Parameter>& parameters) {
  std::vector<Parameter> result;
  for (const auto& parameter : parameters) {
    if (!is_matrix(parameter)) result.push_back(parameter);
  }
  return result;
}

at::Tensor wide(const at::Tensor& x) {
  return x.size(0) > x.size(1) ? x.t() : x;
}

}  // namespace

at::Tensor orthogonalized(at::Tensor x) {
  const auto norm = at::linalg_vector_norm(
      x, 2, {1, 2}, /*keepdim=*/true,
      x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  x = x / (norm + 1e-7).to(x.scalar_type());
  for (int i = 0; i < kIterations; ++i) {
    const auto square = at::bmm(x, x.transpose(1, 2));
    const auto factor = at::baddbmm(square, square, square, kCubic, kQuintic);
    x = at::baddbmm(x, factor, x, kLinear);
  }
  return x;
}

Muon::Muon(double momentum, const AdamSettings& settings,
           const std::vector<Parameter>& parameters)
    : momentum_(momentum),
      decay_(settings.decay),
      adam_(settings, others(parameters)) {
  check_parameters(parameters);
  for (const auto& parameter : parameters) {
    if (!is_matrix(parameter)) continue;
    momenta_.push_back(
        zero_moment(parameter, "momentum", parameter.value.sizes()));
  }
}

void Muon::update(std::vector<Parameter>& parameters, double learning_rate) {
  const at::NoGradGuard no_grad;
  auto rest = others(parameters);
  adam_.update(rest, learning_rate);
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<Matrix>> groups;
  size_t index = 0;
  for (const auto& parameter : parameters) {
    if (!is_matrix(parameter)) continue;
    const auto& momentum = momenta_.at(index++).value;
    if (!parameter.gradient.defined()) continue;
    const auto shape = wide(parameter.value).sizes();
    groups[{block_of(parameter.name), shape[0], shape[1]}].push_back(
        {parameter.value.detach(), gradient_of(parameter), momentum});
  }
  for (const auto& [key, matrices] : groups) {
    update_together(matrices, learning_rate);
  }
}

void Muon::update_together(const std::vector<Matrix>& matrices,
                           double learning_rate) const {
  std::vector<at::Tensor> values, gradients, momenta;
  for (const auto& [value, gradient, momentum] : matrices) {
    values.push_back(value);
    gradients.push_back(gradient);
    momenta.push_back(momentum);
  }
  at::_foreach_mul_(momenta, momentum_);
  at::_foreach_add_(momenta, gradients, 1 - momentum_);
  auto ahead = at::_foreach_mul(momenta, momentum_);
  at::_foreach_add_(ahead, gradients, 1 - momentum_);

  for (auto& x : ahead) x = wide(x);
  auto stacked = at::stack(ahead);
  if (stacked.is_cuda()) stacked = stacked.to(at::kBFloat16);
  const auto directions = orthogonalized(stacked);

  at::_foreach_mul_(values, 1 - learning_rate * decay_);
  const double size = kElement * std::sqrt(double(directions.size(2)));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto direction = directions[static_cast<int64_t>(i)];
    const bool turned = values[i].size(0) > values[i].size(1);
    values[i].add_(turned ? direction.t() : direction, -learning_rate * size);
  }
}

std::vector<NamedTensor> Muon::moments() const {
  auto all = momenta_;
  const auto& rest = adam_.moments();
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

std::vector<NamedTensor> Muon::state() const {
  return state_of(moments(), adam_.steps());
}

void Muon::load_state(const std::vector<NamedTensor>& state) {
  auto all = moments();  // shares their memory
  adam_.count_from(load_state_into(all, state));
}

}  // namespace reformer
