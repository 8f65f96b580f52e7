// Autograd asked for the gradient of a single operation.
//
// In a file of its own: the headers of LibTorch's engine take a compiler six
// seconds.
#pragma once

#include <ATen/core/Tensor.h>

namespace reformer {

// The same elements as the start of a graph of its own.
at::Tensor leaf(const at::Tensor& x);

// Backpropagates `gradient` from `output`, whose own elements are released
// first, into the leaves' grad().
void backward_from(at::Tensor output, const at::Tensor& gradient);

}  // namespace reformer
