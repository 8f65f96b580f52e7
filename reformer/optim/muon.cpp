#include "reformer/optim/muon.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "reformer/optim/optimizer_state.h"

namespace reformer {
namespace {

// Of the polynomial that lifts small singular values fastest and keeps those
// near 1 there, give or take a quarter.
constexpr double kLinear = 3.4445;
constexpr double kCubic = -4.7750;
constexpr double kQuintic = 2.0315;
constexpr int kIterations = 5;

// The size of an element of Adam's steps, as found in training.
constexpr double kElement = 0.2;

bool is_matrix(const Parameter& parameter) {
  return block_of(parameter.name) >= 0 && parameter.value.dim() == 2;
}

std::vector<size_t> indices_of(const std::vector<Parameter>& parameters,
                               bool matrices) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (is_matrix(parameters[i]) == matrices) indices.push_back(i);
  }
  return indices;
}

std::vector<Parameter> chosen(const std::vector<Parameter>& parameters,
                              const std::vector<size_t>& indices) {
  std::vector<Parameter> result;
  for (const size_t i : indices) result.push_back(parameters[i]);
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
  x.div_((norm + 1e-7).to(x.scalar_type()));
  for (int i = 0; i < kIterations; ++i) {
    const auto square = at::bmm(x, x.transpose(1, 2));
    const auto factor = at::baddbmm(square, square, square, kCubic, kQuintic);
    x = at::baddbmm(x, factor, x, kLinear);
  }
  return x;
}

Muon::Muon(const MuonSettings& settings,
           const std::vector<Parameter>& parameters)
    : settings_(settings),
      matrices_(indices_of(parameters, true)),
      others_(indices_of(parameters, false)),
      adam_(settings.adam, chosen(parameters, others_)) {
  check_parameters(parameters);
  for (const size_t i : matrices_) {
    momenta_.push_back(
        zero_moment(parameters[i], "momentum", parameters[i].value.sizes()));
  }
}

void Muon::update(std::vector<Parameter>& parameters, double learning_rate) {
  TORCH_INTERNAL_ASSERT(parameters.size() == matrices_.size() + others_.size());
  const at::NoGradGuard no_grad;
  auto others = chosen(parameters, others_);
  adam_.update(others, learning_rate);
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<Matrix>> groups;
  for (size_t m = 0; m < matrices_.size(); ++m) {
    const auto& parameter = parameters[matrices_[m]];
    if (!parameter.gradient().defined()) continue;
    const int64_t rows = parameter.value.size(0);
    const int64_t columns = parameter.value.size(1);
    groups[{block_of(parameter.name), std::min(rows, columns),
            std::max(rows, columns)}]
        .push_back({parameter.value.detach(), gradient_of(parameter),
                    momenta_[m].value});
  }
  for (const auto& [key, matrices] : groups) {
    update_together(matrices, learning_rate);
  }
}

void Muon::update_together(const std::vector<Matrix>& matrices,
                           double learning_rate) const {
  const double momentum = settings_.momentum;
  std::vector<at::Tensor> values, gradients, momenta;
  for (const auto& [value, gradient, moment] : matrices) {
    values.push_back(value);
    gradients.push_back(gradient);
    momenta.push_back(moment);
  }
  at::_foreach_mul_(momenta, momentum);
  at::_foreach_add_(momenta, gradients, 1 - momentum);
  auto ahead = at::_foreach_mul(momenta, momentum);
  at::_foreach_add_(ahead, gradients, 1 - momentum);

  const bool rounded = settings_.rounded && values[0].is_cuda();
  for (auto& x : ahead) {
    x = wide(x);
    if (rounded) x = x.to(at::kBFloat16);
  }
  auto stacked = at::stack(ahead);
  ahead.clear();
  const auto directions = orthogonalized(std::move(stacked));

  at::_foreach_mul_(values, 1 - learning_rate * settings_.adam.decay);
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
