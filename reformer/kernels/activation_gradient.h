// The gradient of an activation and its sums over rows, in one pass on a GPU.
// (On the CPU LibTorch's serve.)
#pragma once

#include <cstdint>

#include "reformer/kernels/activation.h"
#include "reformer/kernels/bf16.h"

namespace reformer::kernels {

struct ActivationGradientArgs {
  const Bf16* x;   // [rows, width]: what the activation was given, or returned
  Bf16* d;         // [rows, width]: its result's gradient; becomes x's
  float* sums;     // [width]: x's gradient, summed over rows, is added
  float* partial;  // [kActivationPartials, width], workspace
  int64_t rows;
  int64_t width;  // a multiple of 8; rows of x and d start at 16 bytes
  Activation activation;
};

// Sums are taken in so many parts, whatever the GPU: the same bits on all.
inline constexpr int64_t kActivationPartials = 64;

namespace cuda {
void activation_gradient(const ActivationGradientArgs& args, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
