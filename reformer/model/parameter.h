// A model's parameters, as the optimizer and the checkpoint see them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace reformer {

struct Parameter {
  std::string name;  // unique, dotted: "blocks.0.attention.qk.weight"
  at::Tensor value;  // float32 (float64 in gradient checks; Placement has more)
  at::Tensor
      gradient;  // the sum over what was backpropagated; may be undefined
};

struct NamedTensor {
  std::string name;
  at::Tensor value;
};

// The block that a parameter or its optimizer state belongs to, by its name;
// -1: none, as embeddings.
int64_t block_of(const std::string& name);

}  // namespace reformer
