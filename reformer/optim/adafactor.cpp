#include "reformer/optim/adafactor.h"

#include <c10/util/Exception.h>

#include <cmath>

#include "reformer/ops/adafactor_update.h"
#include "reformer/optim/adafactor_matrices.h"
#include "reformer/optim/adafactor_rule.h"
#include "reformer/optim/chunks.h"
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

// Updates v on the way.
template <class T>
double sum_of_updates(int64_t n, double beta2, const T* g, T* v) {
  const T keep = static_cast<T>(beta2);
  const T gain = static_cast<T>(1 - beta2);
  const T epsilon = static_cast<T>(kAdafactorEpsilon);
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; ++j) {
    v[j] = keep * v[j] + gain * (g[j] * g[j] + epsilon);
    const double y = g[j] / std::sqrt(v[j]);
    sum += y * y;
  }
  return sum;
}

template <class T>
void subtract(int64_t n, T scale, T* w, const T* g, const T* v) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) w[j] -= scale * g[j] / std::sqrt(v[j]);
}

template <class T>
void update_vector(int64_t n, double beta2, double rate, T* w, const T* g,
                   T* v) {
  const double sum_w = sum_over_chunks(n, [&](int64_t begin, int64_t end) {
    return sum_of_squares(w + begin, end - begin);
  });
  const double sum_y = sum_over_chunks(n, [&](int64_t begin, int64_t end) {
    return sum_of_updates(end - begin, beta2, g + begin, v + begin);
  });
  const T scale = static_cast<T>(adafactor_scale(rate, sum_w, sum_y, n));
  for_each_chunk(n, [&](int64_t begin, int64_t end) {
    subtract(end - begin, scale, w + begin, g + begin, v + begin);
  });
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
  if (!parameters.empty() && !parameters[0].value.device().is_cpu()) {
    return update_on_device(parameters, beta2, learning_rate);
  }
  const auto update = [&](auto zero, const at::Tensor& value,
                          const at::Tensor& gradient, size_t index) {
    using T = decltype(zero);
    if (value.numel() == 0) return;
    T* w = value.mutable_data_ptr<T>();
    const T* g = gradient.const_data_ptr<T>();
    const auto moment = [&](size_t i) {
      return moments_[first_moment_[index] + i].value.mutable_data_ptr<T>();
    };
    if (value.dim() < 2) {
      update_vector(value.numel(), beta2, learning_rate, w, g, moment(0));
      return;
    }
    const int64_t rows = value.size(-2);
    const int64_t columns = value.size(-1);
    const int64_t matrices = value.numel() / (rows * columns);
    update_matrices<T>({w, g, moment(0), moment(1), matrices, rows, columns},
                       beta2, learning_rate);
  };
  for_each_gradient(parameters, update);
}

void Adafactor::update_on_device(const std::vector<Parameter>& parameters,
                                 double beta2, double learning_rate) {
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
