// How kernels see a tensor [batch, heads, length, d_head] of vectors.
#pragma once

#include <cstdint>

namespace reformer::kernels {

// Elements of one vector lie side by side; all other strides are free, in
// elements. 64-bit: a tensor may hold more than 2^31 elements.
template <class T>
struct Rows {
  T* data = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;

  constexpr T* head(int64_t batch, int64_t head) const {
    return data + batch * batch_stride + head * head_stride;
  }
};

}  // namespace reformer::kernels
