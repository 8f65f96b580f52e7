// Matmuls of few rows with large matrices on a GPU, as generating has them:
// what costs time is reading the matrices, once, and launching kernels.
#pragma once

#include <cstdint>

#include "reformer/kernels/activation.h"
#include "reformer/kernels/bf16.h"

namespace reformer::kernels {

enum class GemmResult { kRounded, kFloat, kAdded };  // T, float, added to float

inline constexpr int64_t kMaxGemmMatrices = 3;
inline constexpr int64_t kMaxGemmRows = 8;
inline constexpr int64_t kMaxRowBytes = 16 * 1024;  // of one row in T

template <class T>
struct GemmMatrix {
  const T* weight;    // [outputs, width]
  const float* bias;  // [outputs], or null
  void* y;            // [rows, outputs], written or added to
  int64_t outputs;
};

// y = activation(x W^T + bias) for every matrix of the same rows x.
template <class T>
struct SmallGemmArgs {
  const void* x;             // [rows, width]: float where normed, else T
  const float* norm_weight;  // [width], or null: x is not normed
  const float* norm_bias;
  float norm_epsilon;  // added to the variance
  GemmMatrix<T> matrices[kMaxGemmMatrices];
  int64_t n_matrices;
  Activation activation;
  GemmResult result;
  int64_t rows;   // 1 to kMaxGemmRows
  int64_t width;  // a multiple of 8, of at most kMaxRowBytes
};

namespace cuda {
void small_gemm(const SmallGemmArgs<float>& args, void* stream);
void small_gemm(const SmallGemmArgs<Bf16>& args, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
