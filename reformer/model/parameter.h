// A model's parameters, as the optimizer and the checkpoint see them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace reformer {

struct Parameter {
  Parameter(std::string its_name, at::Tensor its_value,
            const at::Tensor& gradient = {})
      : name(std::move(its_name)), value(std::move(its_value)) {
    if (gradient.defined()) value.mutable_grad() = gradient;
  }

  std::string name;  // unique, dotted: "blocks.0.attention.qk.weight"
  at::Tensor value;  // float32 (float64 in gradient checks; Placement has more)

  // The sum over what was backpropagated, undefined where nothing was. It lives
  // with the value, so that copies of a Parameter have one gradient.
  at::Tensor& gradient() const { return value.mutable_grad(); }
};

struct NamedTensor {
  std::string name;
  at::Tensor value;
};

// The block that a parameter or its optimizer state belongs to, by its name;
// -1: none, as embeddings.
int64_t block_of(const std::string& name);

}  // namespace reformer
