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

}  // namespace

double clip_gradients(std::vector<Parameter>& parameters, double most) {
  const double norm = norm_of_gradients(parameters);
  if (most <= 0 || norm <= most || !std::isfinite(norm)) return norm;
  for (auto& parameter : parameters) {
    if (parameter.gradient.defined()) parameter.gradient.mul_(most / norm);
  }
  return norm;
}

}  // namespace reformer
