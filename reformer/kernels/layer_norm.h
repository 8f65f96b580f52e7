// Layer norm of float32 rows on a GPU, its result rounded to what the matmuls
// take. (On the CPU LibTorch's serves.)
#pragma once

#include <cstdint>

#include "reformer/kernels/bf16.h"

namespace reformer::kernels {

inline constexpr int64_t kMaxLayerNormWidth = 2048;

// T: float or Bf16.
template <class T>
struct LayerNormArgs {
  const float* x;       // [rows, width]
  const float* weight;  // [width]
  const float* bias;    // [width]
  T* y;                 // [rows, width], written
  float* statistics;    // [rows, 2], written: mean and 1 / deviation
  int64_t rows;
  int64_t width;
  float epsilon;  // added to the variance
};

template <class T>
struct LayerNormGradArgs {
  const float* x;           // [rows, width]
  const float* weight;      // [width]
  const float* statistics;  // [rows, 2]
  const T* d_y;             // [rows, width]
  float* d_x;               // [rows, width]
  float* d_weight;          // [width]
  float* d_bias;            // [width]
  float* partial;           // [kLayerNormPartials, 2, width], workspace
  int64_t rows;
  int64_t width;
  bool add;  // to d_x, d_weight and d_bias; else they are written
};
// Sums of the parameters' gradients are taken in so many parts, whatever the
// GPU: the same bits on all.
inline constexpr int64_t kLayerNormPartials = 264;

namespace cuda {
void layer_norm(const LayerNormArgs<float>& args, void* stream);
void layer_norm(const LayerNormArgs<Bf16>& args, void* stream);
void layer_norm_grad(const LayerNormGradArgs<float>& args, void* stream);
void layer_norm_grad(const LayerNormGradArgs<Bf16>& args, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
