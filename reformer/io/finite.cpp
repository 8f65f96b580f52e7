#include "reformer/io/finite.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>

#include <cstdint>
#include <map>

namespace reformer {
namespace {

// Of one device: indices among all tensors, and whether each is finite.
struct Answers {
  std::vector<size_t> indices;
  std::vector<at::Tensor> finite;  // bool, no dimensions
};

// The least and the greatest are NaN where any number is.
at::Tensor is_finite(const at::Tensor& value) {
  const auto [least, greatest] = at::aminmax(value.detach());
  return at::isfinite(least).logical_and(at::isfinite(greatest));
}

}  // namespace

std::string first_not_finite(const std::vector<NamedTensor>& tensors) {
  std::map<std::string, Answers> devices;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& value = tensors[i].value;
    if (!value.is_floating_point() || value.numel() == 0) continue;
    Answers& answers = devices[value.device().str()];
    answers.indices.push_back(i);
    answers.finite.push_back(is_finite(value));
  }
  size_t first = tensors.size();
  for (const auto& [device, answers] : devices) {
    const auto finite = at::stack(answers.finite).cpu();
    const bool* is = finite.const_data_ptr<bool>();
    for (size_t i = 0; i < answers.indices.size(); ++i) {
      if (!is[i]) first = std::min(first, answers.indices[i]);
    }
  }
  return first == tensors.size() ? "" : tensors[first].name;
}

}  // namespace reformer
