#include "reformer/optim/adafactor.h"

#include <c10/util/Exception.h>

#include <cmath>

#include "reformer/ops/adafactor_update.h"
#include "reformer/optim/optimizer_state.h"

namespace reformer {
namespace {

constexpr double kDecayPower = -0.8;

std::vector<NamedTensor> moments_of(const Parameter& parameter) {
  const auto sizes = parameter.value.sizes();
  if (sizes.size() < 2) {
    return {zero_moment(parameter, "second_moment", sizes)};
  }
  auto columns = sizes.vec();  // without the rows
  columns.erase(columns.end() - 2);
  return {
      zero_moment(parameter, "row_moment", sizes.slice(0, sizes.size() - 1)),
      zero_moment(parameter, "column_moment", columns)};
}

}  // namespace

Adafactor::Adafactor(const std::vector<Parameter>& parameters) {
  check_parameters(parameters);
  for (const auto& parameter : parameters) {
    first_moment_.push_back(moments_.size());
    for (auto& moment : moments_of(parameter)) {
      moments_.push_back(std::move(moment));
    }
  }
}

void Adafactor::update(std::vector<Parameter>& parameters,
                       double learning_rate) {
  TORCH_INTERNAL_ASSERT(parameters.size() == first_moment_.size());
  const double beta2 = 1 - std::pow(double(steps_), kDecayPower);
  std::vector<AdafactorParameter> updated;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& parameter = parameters[i];
    if (!parameter.gradient().defined()) continue;
    const auto moment = [&](size_t at) {
      return moments_[first_moment_[i] + at].value;
    };
    const bool is_matrix = parameter.value.dim() >= 2;
    updated.push_back({parameter.value.detach(), gradient_of(parameter),
                       is_matrix ? moment(0) : at::Tensor(),
                       moment(is_matrix ? 1 : 0)});
  }
  adafactor_update(updated, beta2, learning_rate);
}

std::vector<NamedTensor> Adafactor::state() const {
  return state_of(moments_, steps_);
}

void Adafactor::load_state(const std::vector<NamedTensor>& state) {
  steps_ = load_state_into(moments_, state);
}

}  // namespace reformer
