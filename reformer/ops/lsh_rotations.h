// Random rotations for the angular hash (paper Sec. 2).
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/config/lsh_config.h"

namespace reformer {

//   returns  [heads, rounds, d_head, rotation_columns(n_buckets)]  float32
//
// Independent standard normal numbers, rounded to bf16, so that products with
// bf16 vectors are exact on tensor cores. Each is a function of (key, head,
// round) and of its place alone: the number of heads or rounds drawn does not
// change it, nor does the device, and no global random generator is touched.
// Throws Error when
// n_buckets is impossible (config/bucket_count.h) or a size is not positive.
at::Tensor lsh_rotations(const HashKey& key, int64_t heads, int64_t rounds,
                         int64_t d_head, int64_t n_buckets,
                         at::Device device = at::kCPU);

// The same of any number of columns, for hashes of other factors.
at::Tensor rotations_of_columns(const HashKey& key, int64_t heads,
                                int64_t rounds, int64_t d_head, int64_t columns,
                                at::Device device);

}  // namespace reformer
