// A model for the tests of the public surface, and tokens for it.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/remainder.h>

#include "reformer/model.h"

namespace public_tests {

inline reformer::ModelOptions small_options() {
  return {.layers = 2,
          .d_model = 16,
          .heads = 2,
          .vocabulary = 16,
          .length = 48,
          .attention = "local,lsh",
          .learning_rate = 1e-2,
          .seed = 7,
          .settings = {"lsh.chunk_length=8", "model.dropout=0.1"}};
}

// Row r counts by 3 from `first` + r, modulo 16: [batch, length].
inline at::Tensor counting(int64_t first, int64_t batch, int64_t length) {
  return (first + at::arange(batch).view({batch, 1}) + 3 * at::arange(length))
      .remainder(16);
}

}  // namespace public_tests
