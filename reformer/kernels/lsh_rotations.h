// Random rotations for the angular hash, drawn from counters.
#pragma once

#include <cstdint>

#include "reformer/base/philox.h"
#include "reformer/config/lsh_config.h"

namespace reformer::kernels {

struct LshRotationsArgs {
  HashKey key;
  float* rotations;  // [heads, rounds, d_head, columns], written
  int64_t heads;
  int64_t rounds;
  int64_t d_head;
  int64_t columns;  // rotation_columns(n_buckets)
};

// Folds step and layer into the key, so that the counter is left for the
// element's own coordinates.
constexpr PhiloxKey rotation_key(const HashKey& key) {
  const auto mixed = philox(
      {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)},
      {static_cast<uint32_t>(key.step), static_cast<uint32_t>(key.step >> 32),
       key.layer, /*purpose: rotations=*/0x526f7461});
  return {mixed[0], mixed[1]};
}

namespace cpu {
void lsh_rotations(const LshRotationsArgs& args);
}

namespace cuda {
void lsh_rotations(const LshRotationsArgs& args, void* stream);
}

}  // namespace reformer::kernels
