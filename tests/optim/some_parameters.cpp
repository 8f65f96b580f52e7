#include "tests/optim/some_parameters.h"

#include <ATen/ops/empty.h>

namespace reformer {

at::Tensor numbers(const Sizes& sizes, int64_t seed, at::ScalarType type) {
  at::Tensor x = at::empty(sizes, at::kDouble);
  double* data = x.mutable_data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t mixed = (7919 * i + 104729 * seed + 31) % 2003;
    const double u = static_cast<double>(mixed) / 1001.5 - 1;
    data[i] = 5 * u * u * u;
  }
  return x.to(type);
}

std::vector<Parameter> some_parameters(at::ScalarType type) {
  std::vector<Parameter> parameters;
  for (const Sizes& sizes :
       {Sizes{7}, Sizes{5, 3}, Sizes{2, 3, 5}, Sizes{1, 9}, Sizes{6, 1},
        Sizes{}, Sizes{70, 1000}, Sizes{70000}}) {
    const int64_t index = static_cast<int64_t>(parameters.size());
    parameters.push_back({std::string("p").append(std::to_string(index)),
                          numbers(sizes, index, type), at::Tensor()});
  }
  return parameters;
}

void set_gradients(std::vector<Parameter>& parameters, int64_t step) {
  int64_t index = 0;
  for (auto& parameter : parameters) {
    const auto& value = parameter.value;
    parameter.gradient() =
        numbers(value.sizes().vec(), 17 * step + index++, value.scalar_type());
  }
}

std::vector<double> values_of(const at::Tensor& x) {
  const at::Tensor y = x.to(at::kDouble).contiguous();
  const double* data = y.const_data_ptr<double>();
  return {data, data + y.numel()};
}

}  // namespace reformer
