// Angular LSH: which bucket each vector falls into (paper Sec. 2, Fig. 1).
#pragma once

#include <ATen/core/Tensor.h>

namespace reformer {

//   vectors    [batch, heads, length, d_head]   float32 or float64, any norm;
//              float32 or bfloat16 on CUDA
//   rotations  [heads, rounds, d_head, rotation_columns(n_buckets)]  float32
//   returns    [batch, heads, rounds, length]   uint16 in [0, n_buckets)
//
// h(x) = argmax([x R; -x R]), ties to the first; above 128 buckets one argmax
// for each factor of n_buckets, whose columns stand side by side in R, in
// mixed radix (config/bucket_count.h). Only the direction of x matters. Carries
// no gradient: the paper back-propagates through the attention weights only.
// CUDA rounds rotations to bfloat16, which lsh_rotations' already are, and
// takes columns for equal that agree to 17 bits; the first then wins, whatever
// its sign.
at::Tensor lsh_buckets(const at::Tensor& vectors, const at::Tensor& rotations,
                       int64_t n_buckets);

}  // namespace reformer
