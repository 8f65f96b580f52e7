// Rotary positions (Su et al., RoFormer, arXiv 2104.09864).
#pragma once

#include <ATen/core/Tensor.h>

namespace reformer {

struct RotaryConfig {
  int64_t first_head = 0;  // heads before it stay as they are
  int64_t pairs = 0;       // columns c and c + pairs turn together, c < pairs;
                           // those from 2 pairs on stay as they are
};

//   x        [batch, heads, length, d_head], as the attentions take it
//   first    [batch] int64 on the device of x: the position of each row's first
//            vector; undefined: 0
//   returns  as x, differentiable
//
// Pair c of the vector at position p turns by p 10000^(-c / pairs) radians: the
// product of two vectors depends on their distance, not on where they are.
// Angles are products in float64: exact to float32 up to 2^28 positions.
at::Tensor rotary(const at::Tensor& x, const RotaryConfig& config,
                  const at::Tensor& first = {});

}  // namespace reformer
