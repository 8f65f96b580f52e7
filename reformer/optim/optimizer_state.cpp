#include "reformer/optim/optimizer_state.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <unordered_map>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

constexpr const char* kSteps = "optimizer.steps";

using TensorsByName = std::unordered_map<std::string, at::Tensor>;

TensorsByName by_name(const std::vector<NamedTensor>& tensors) {
  TensorsByName found;
  for (const auto& [name, value] : tensors) found[name] = value;
  return found;
}

const at::Tensor& find(const TensorsByName& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  require(found != tensors.end(), "optimizer state: ", name,
          " is missing; was it saved by another optimizer?");
  return found->second;
}

void check_like(const std::string& name, const at::Tensor& given,
                const at::Tensor& own) {
  require(
      given.scalar_type() == own.scalar_type() && given.sizes() == own.sizes(),
      "optimizer state: ", name, " must be ", own.scalar_type(), " ",
      own.sizes(), ", got ", given.scalar_type(), " ", given.sizes());
}

}  // namespace

void check_parameters(const std::vector<Parameter>& parameters) {
  for (const auto& [name, value] : parameters) {
    const auto type = value.scalar_type();
    require(type == at::kFloat || type == at::kDouble, "optimizer: ", name,
            " must be float32 or float64, got ", type);
    const auto device = parameters[0].value.device();
    require(value.device() == device || block_of(name) >= 0,
            "optimizer: ", name, " must be on ", device, " like ",
            parameters[0].name, ", got ", value.device());
    require(value.is_contiguous(), "optimizer: ", name, " must be contiguous");
  }
}

at::Tensor gradient_of(const Parameter& parameter) {
  const at::Tensor& gradient = parameter.gradient();
  const at::Tensor& value = parameter.value;
  require(gradient.sizes() == value.sizes() &&
              gradient.scalar_type() == value.scalar_type(),
          "optimizer: the gradient of ", parameter.name, " must be ",
          value.scalar_type(), " ", value.sizes(), ", got ",
          gradient.scalar_type(), " ", gradient.sizes());
  return gradient.contiguous();
}

NamedTensor zero_moment(const Parameter& parameter, const std::string& what,
                        at::IntArrayRef sizes) {
  return {parameter.name + "." + what,
          at::zeros(sizes, parameter.value.options())};
}

std::vector<NamedTensor> state_of(const std::vector<NamedTensor>& moments,
                                  int64_t steps) {
  std::vector<NamedTensor> state = moments;
  state.push_back({kSteps, at::full({1}, steps, at::kLong)});
  return state;
}

int64_t load_state_into(std::vector<NamedTensor>& moments,
                        const std::vector<NamedTensor>& state) {
  const TensorsByName given = by_name(state);
  const at::Tensor steps = find(given, kSteps);
  check_like(kSteps, steps, at::zeros({1}, at::kLong));
  for (const auto& [name, own] : moments) {
    check_like(name, find(given, name), own);
  }
  require(given.size() == moments.size() + 1,
          "optimizer state: ", moments.size() + 1,
          " tensors are required, got ", given.size());
  for (auto& [name, own] : moments) own.copy_(find(given, name));
  return steps.item<int64_t>();
}

}  // namespace reformer
