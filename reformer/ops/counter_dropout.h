// Dropout that can be replayed.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/kernels/counter_dropout.h"

namespace reformer {

using kernels::DropoutKey;

//   x        [batch, length, width]  float32 or float64; on CUDA float32 or
//            bfloat16
//   returns  the same sizes, differentiable
//
// Each element becomes 0 with `probability` (to 1 in 65,536), else it is scaled
// so that the mean stays. The choice is a function of key, example, position
// and column alone: a part of a sequence from `first_position` on is treated as
// within the whole, a part of a step's examples from `key.first_example` on
// likewise, and the backward pass draws again instead of keeping a mask. A
// probability of 0 returns x itself.
at::Tensor counter_dropout(const at::Tensor& x, double probability,
                           const DropoutKey& key, int64_t first_position = 0);

}  // namespace reformer
