// Where a model's parameters live, and in which precision it computes.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/config/choices.h"

namespace reformer {

class Communicator;

// Parameters, their gradients, the residual streams, hashing, softmax
// statistics and the loss are of `type`; matmuls and attention of `compute`.
// The matrices of matmuls, which are nearly all of a model, are of `matrices`:
// where they are trained `type`, or steps smaller than their rounding would be
// lost.
struct Placement {
  Placement() = default;
  explicit(false) Placement(at::ScalarType all)
      : type(all), compute(all), matrices(all) {}
  Placement(at::Device where, at::ScalarType computed)
      : compute(computed), device(where) {}

  at::ScalarType type = at::kFloat;
  at::ScalarType compute = at::kFloat;
  at::ScalarType matrices = at::kFloat;
  at::Device device = at::kCPU;
  bool blocks_on_host = false;  // the blocks' parameters, but not their work
  // The ranks that share each sequence of a training pass or an evaluation, by
  // positions, and its attention by heads; null: this one has all of it.
  Communicator* sequence = nullptr;
};

// By train.precision; Error for bfloat16 on a CPU.
Placement placement_on(at::Device device, Precision precision);

// The same for a model that was trained elsewhere: on a CPU it computes in
// float32, whatever it was trained in.
Placement placement_of_trained(at::Device device, Precision precision);

// Likewise for one that will not be trained further: its matrices are kept as
// matmuls take them.
Placement placement_for_use(at::Device device, Precision precision);

}  // namespace reformer
