// The norm of all gradients, from parts that may be known at different times.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace reformer {

// What norm_of wants to know of each gradient. On a GPU nothing waits.
std::vector<at::Tensor> norm_parts(const std::vector<at::Tensor>& gradients);

// Of all gradients together, a scalar float64 where the parts are.
at::Tensor norm_of(const std::vector<at::Tensor>& parts);

// Scales gradients, in place, by most / norm where that is below 1. A norm that
// is not finite leaves them alone, on a GPU makes them that, too.
void scale_gradients(std::vector<at::Tensor> gradients, const at::Tensor& norm,
                     double most);

}  // namespace reformer
