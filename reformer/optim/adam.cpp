#include "reformer/optim/adam.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>

#include <cmath>

#include "reformer/base/chunks.h"
#include "reformer/optim/optimizer_state.h"

namespace reformer {
namespace {

template <class T>
struct AdamFactors {
  T beta1;
  T beta2;
  T gain1;  // 1 - beta1, rounded once: 1 - T(beta1) would lose digits
  T gain2;
  T epsilon;
  T keep;        // 1 - rate * decay
  T rate;        // rate / (1 - beta1^t)
  T correction;  // 1 / sqrt(1 - beta2^t)
};

template <class T>
AdamFactors<T> factors_of(const AdamSettings& settings, int64_t step,
                          double learning_rate, bool decays) {
  const auto& [beta1, beta2, epsilon, decay] = settings;
  const double t = static_cast<double>(step);
  return {.beta1 = static_cast<T>(beta1),
          .beta2 = static_cast<T>(beta2),
          .gain1 = static_cast<T>(1 - beta1),
          .gain2 = static_cast<T>(1 - beta2),
          .epsilon = static_cast<T>(epsilon),
          .keep = static_cast<T>(decays ? 1 - learning_rate * decay : 1),
          .rate = static_cast<T>(learning_rate / (1 - std::pow(beta1, t))),
          .correction = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, t)))};
}

// One pass: reads w, g, m and v, writes w, m and v.
template <class T>
void update_run(const AdamFactors<T>& f, int64_t n, T* w, const T* g, T* m,
                T* v) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    m[j] = f.beta1 * m[j] + f.gain1 * g[j];
    v[j] = f.beta2 * v[j] + f.gain2 * g[j] * g[j];
    const T root = std::sqrt(v[j]) * f.correction + f.epsilon;
    w[j] = f.keep * w[j] - f.rate * m[j] / root;
  }
}

}  // namespace

Adam::Adam(const AdamSettings& settings,
           const std::vector<Parameter>& parameters)
    : settings_(settings) {
  check_parameters(parameters);
  for (const auto& parameter : parameters) {
    const auto sizes = parameter.value.sizes();
    moments_.push_back(zero_moment(parameter, "first_moment", sizes));
    moments_.push_back(zero_moment(parameter, "second_moment", sizes));
  }
}

void Adam::update(std::vector<Parameter>& parameters, double learning_rate) {
  TORCH_INTERNAL_ASSERT(2 * parameters.size() == moments_.size());
  if (!parameters.empty() && !parameters[0].value.device().is_cpu()) {
    return update_on_device(parameters, learning_rate);
  }
  const auto update_one = [&](auto zero, const at::Tensor& value,
                              const at::Tensor& gradient, size_t index) {
    using T = decltype(zero);
    const auto factors =
        factors_of<T>(settings_, steps_, learning_rate, value.dim() >= 2);
    const int64_t elements = value.numel();
    T* w = value.mutable_data_ptr<T>();
    const T* g = gradient.const_data_ptr<T>();
    T* m = moments_[2 * index].value.mutable_data_ptr<T>();
    T* v = moments_[2 * index + 1].value.mutable_data_ptr<T>();
    for_each_chunk(elements, [&](int64_t begin, int64_t end) {
      update_run(factors, end - begin, w + begin, g + begin, m + begin,
                 v + begin);
    });
  };
  for_each_gradient(parameters, update_one);
}

// LibTorch's kernel takes all parameters of one decay at once.
void Adam::update_on_device(const std::vector<Parameter>& parameters,
                            double learning_rate) {
  const at::NoGradGuard no_grad;
  const auto step = at::full({}, double(steps_),
                             parameters[0].value.options().dtype(at::kFloat));
  for (const bool decays : {false, true}) {
    std::vector<at::Tensor> w, g, m, v;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto& value = parameters[i].value;
      if (!parameters[i].gradient().defined() || (value.dim() >= 2) != decays)
        continue;
      w.push_back(value.detach());
      g.push_back(gradient_of(parameters[i]));
      m.push_back(moments_[2 * i].value);
      v.push_back(moments_[2 * i + 1].value);
    }
    if (w.empty()) continue;
    at::_fused_adamw_(w, g, m, v, /*max_exp_avg_sqs=*/{},
                      std::vector<at::Tensor>(w.size(), step), learning_rate,
                      settings_.beta1, settings_.beta2,
                      decays ? settings_.decay : 0, settings_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false);
  }
}

std::vector<NamedTensor> Adam::state() const {
  return state_of(moments_, steps_);
}

void Adam::load_state(const std::vector<NamedTensor>& state) {
  steps_ = load_state_into(moments_, state);
}

}  // namespace reformer
