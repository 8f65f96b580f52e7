// Random rotations for the angular hash, drawn from counters.
#pragma once

#include <cstdint>

#include "reformer/core/lsh_config.h"

namespace reformer::kernels {

struct LshRotationsArgs {
  HashKey key;
  float* rotations;  // [heads, rounds, d_head, columns], written
  int64_t heads;
  int64_t rounds;
  int64_t d_head;
  int64_t columns;  // rotation_columns(n_buckets)
};

namespace cpu {
void lsh_rotations(const LshRotationsArgs& args);
}

}  // namespace reformer::kernels
