// Adafactor's update (the rule is in optim/adafactor.h): of one parameter on a
// CPU, of all at once on a GPU.
#pragma once

#include <cstdint>

namespace reformer::kernels {

inline constexpr double kAdafactorEpsilon = 1e-30;       // added to g^2
inline constexpr double kAdafactorSmallestScale = 1e-3;  // for RMS(w) about 0

namespace cpu {

template <class T>
struct AdafactorArgs {
  T* w;        // [matrices, rows, columns], updated
  const T* g;  // likewise
  T* r;        // [matrices, rows], updated; null: a vector, of one row
  T* c;        // [matrices, columns], updated
  int64_t matrices;
  int64_t rows;
  int64_t columns;
  double beta2;
  double learning_rate;
};

// Three passes: g and w for the means and RMS(w), g for RMS(y), g and w for the
// update. RMS(y) must be known before the first element changes.
void adafactor(const AdafactorArgs<float>& args);
void adafactor(const AdafactorArgs<double>& args);

}  // namespace cpu

// A stack of matrices; a vector is one matrix of one row, without r.
struct AdafactorTensor {
  float* w;        // [matrices, rows, columns], updated
  const float* g;  // likewise
  float* r;        // [matrices, rows], updated; null: a vector
  float* c;        // [matrices, columns], updated
  int64_t matrices;
  int64_t rows;
  int64_t columns;

  // Filled by adafactor_plan: where this tensor's work and sums begin.
  int64_t row_tiles;
  int64_t column_tiles;
  int64_t first_tile;
  int64_t first_row_sum;
  int64_t first_column_sum;
  int64_t first_moment;
  int64_t first_matrix;
};

namespace cuda {

struct AdafactorArgs {
  const AdafactorTensor* tensors;         // [count], planned, on the host
  const AdafactorTensor* device_tensors;  // the same on the device
  int64_t count;
  double beta2;
  double learning_rate;
};

// Plans the tensors, which lie on the host; returns the bytes of the workspace.
int64_t adafactor_plan(AdafactorTensor* tensors, int64_t count);
void adafactor(const AdafactorArgs& args, void* workspace, void* stream);

}  // namespace cuda

}  // namespace reformer::kernels
