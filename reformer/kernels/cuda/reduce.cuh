// Sums and maxima over the 32 lanes of a warp, the same in each of them.
#pragma once

namespace reformer::kernels::cuda {

// Of float or double, always added in the same order.
template <class T>
__device__ __forceinline__ T warp_sum(T x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    x += __shfl_xor_sync(0xffffffff, x, step);
  }
  return x;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
  }
  return x;
}

}  // namespace reformer::kernels::cuda
