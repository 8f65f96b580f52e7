// Adafactor's step of all parameters at once, on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace reformer {

// Contiguous float32 on one GPU.
struct AdafactorParameter {
  at::Tensor value;     // [..., rows, columns] or a vector, updated
  at::Tensor gradient;  // likewise
  at::Tensor rows;      // [..., rows], updated; of a vector undefined
  at::Tensor columns;   // [..., columns], updated; of a vector its own size
};

// The rule of optim/adafactor.h. The same bits every time; nothing waits for
// the device.
void adafactor_update(const std::vector<AdafactorParameter>& parameters,
                      double beta2, double learning_rate);

}  // namespace reformer
