// Adafactor's step of all parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace reformer {

// Contiguous, on one device; float32, or float64 on a CPU.
struct AdafactorParameter {
  at::Tensor value;     // [..., rows, columns] or a vector, updated
  at::Tensor gradient;  // likewise
  at::Tensor rows;      // [..., rows], updated; of a vector undefined
  at::Tensor columns;   // [..., columns], updated; of a vector its own size
};

// The rule of optim/adafactor.h. The same bits every time and for any
// number of threads. On a GPU all parameters at once, and nothing waits for it.
void adafactor_update(const std::vector<AdafactorParameter>& parameters,
                      double beta2, double learning_rate);

}  // namespace reformer
