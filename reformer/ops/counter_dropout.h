// Dropout that can be replayed.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/kernels/counter_dropout.h"

namespace reformer {

using kernels::DropoutKey;

// What is dropped, and how.
struct Dropout {
  double probability = 0;  // of an element, to 1 in 65,536
  DropoutKey key;
  int64_t first_position = 0;  // of a longer sequence
};

//   x        [batch, length, width]  float32 or float64; on CUDA float32 or
//            bfloat16
//   returns  the same sizes, differentiable
//
// Each element becomes 0 with the probability, else it is scaled so that the
// mean stays. The choice is a function of key, example, position and column
// alone: a part of a sequence from `first_position` on is treated as within the
// whole, a part of a step's examples from `key.first_example` on likewise, and
// the backward pass draws again instead of keeping a mask. A probability of 0
// returns x itself.
at::Tensor counter_dropout(const at::Tensor& x, const Dropout& dropout);

// The same without autograd, one kernel each on a GPU for contiguous tensors:
// to = sum + counter_dropout(x), and counter_dropout(x.to(type)).
void add_dropped(const at::Tensor& to, const at::Tensor& sum,
                 const at::Tensor& x, const Dropout& dropout);
at::Tensor dropped_as(at::ScalarType type, const at::Tensor& x,
                      const Dropout& dropout);

}  // namespace reformer
