// Writing one position's key and value into its page.
#pragma once

#include "reformer/kernels/cuda/eight.cuh"
#include "reformer/kernels/interval_attention.h"
#include "reformer/kernels/key_value_pages.h"

namespace reformer::kernels::cuda {

// What a key is multiplied with. In float64: the square of a large fp32 number
// may not fit fp32. By a whole warp; all lanes have the result.
template <class T>
__device__ double unit_factor(const T* k, int d_head, int lane) {
  double squares = 0;
  for (int c = lane; c < d_head; c += 32) {
    const double x = to_float(k[c]);
    squares += x * x;
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    squares += __shfl_xor_sync(0xffffffff, squares, step);
  }
  const double norm = sqrt(squares);
  return norm <= kSmallestKeyNorm ? 0 : 1 / norm;  // NaN stays NaN
}

// By a whole warp. Zeros behind d_head, up to the pages' width.
template <class T>
__device__ void write_page_row(const T* from, double factor, int d_head,
                               int lane, int64_t width, T* to) {
  for (int c = lane; c < width; c += 32) {
    store(to + c, c < d_head ? float(to_float(from[c]) * factor) : 0.0f);
  }
}

template <class T>
__device__ void write_key(const T* k, bool unit_key, int d_head, int lane,
                          const KeyValuePages<T>& pages, int64_t head,
                          int64_t position) {
  const double factor = unit_key ? unit_factor(k, d_head, lane) : 1;
  write_page_row(k, factor, d_head, lane, pages.shape.width,
                 pages.key(head, position));
}

template <class T>
__device__ void write_value(const T* v, int d_head, int lane,
                            const KeyValuePages<T>& pages, int64_t head,
                            int64_t position) {
  write_page_row(v, 1, d_head, lane, pages.shape.width,
                 pages.value(head, position));
}

}  // namespace reformer::kernels::cuda
