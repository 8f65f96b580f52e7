// What the optimizers share: which parameters they take, and how their state
// is named, kept and loaded.
#pragma once

#include <string>
#include <vector>

#include "reformer/model/parameter.h"

namespace reformer {

// Throws Error unless every value is contiguous float32 or float64, and all are
// on one device, but for those of blocks, which may come and go.
void check_parameters(const std::vector<Parameter>& parameters);

// The gradient as the loops take it: contiguous. Throws Error unless it has
// the value's shape and type.
at::Tensor gradient_of(const Parameter& parameter);

// A moment of the parameter's type, all zero: "<parameter>.<what>".
NamedTensor zero_moment(const Parameter& parameter, const std::string& what,
                        at::IntArrayRef sizes);

// The moments and the number of steps done. Shares the moments' memory.
std::vector<NamedTensor> state_of(const std::vector<NamedTensor>& moments,
                                  int64_t steps);

// Copies `state` into `moments` and returns the number of steps. Throws Error
// for a missing, foreign or misshapen tensor, before anything is changed.
int64_t load_state_into(std::vector<NamedTensor>& moments,
                        const std::vector<NamedTensor>& state);

// Calls body(parameter, gradient, index) for each parameter that has a
// gradient, with body's first argument float or double, the value's type.
template <class Body>
void for_each_gradient(std::vector<Parameter>& parameters, const Body& body) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    if (!parameter.gradient().defined()) continue;
    const at::Tensor gradient = gradient_of(parameter);
    if (parameter.value.scalar_type() == at::kDouble) {
      body(double{}, parameter.value, gradient, i);
    } else {
      body(float{}, parameter.value, gradient, i);
    }
  }
}

}  // namespace reformer
