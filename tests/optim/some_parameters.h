// Parameters and gradients of several shapes, for the tests of what trains.
#pragma once

#include <cstdint>
#include <vector>

#include "reformer/model/parameter.h"

namespace reformer {

using Sizes = std::vector<int64_t>;

// Numbers of several magnitudes and both signs, without the global generator.
at::Tensor numbers(const Sizes& sizes, int64_t seed,
                   at::ScalarType type = at::kDouble);

// Vectors, matrices and stacks of them, the largest of several chunks.
std::vector<Parameter> some_parameters(at::ScalarType type);
void set_gradients(std::vector<Parameter>& parameters, int64_t step);

std::vector<double> values_of(const at::Tensor& x);

}  // namespace reformer
