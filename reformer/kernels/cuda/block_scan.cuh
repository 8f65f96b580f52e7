// Prefix sums over the threads of a block.
#pragma once

#include <cstdint>

namespace reformer::kernels::cuda {

// The sum of `value` over all threads before this one; `sum` receives that over
// all. `partial`: 32 ints of shared memory, free again at the next barrier.
template <int kThreads>
__device__ __forceinline__ int exclusive_sum(int value, int* partial,
                                             int* sum) {
  constexpr int kWarps = kThreads / 32;
  static_assert(kWarps <= 32);
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  int inclusive = value;
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    const int below = __shfl_up_sync(0xffffffffu, inclusive, lanes);
    if (lane >= lanes) inclusive += below;
  }
  if (lane == 31) partial[warp] = inclusive;
  __syncthreads();
  int before = 0;
  int all = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += partial[w];
    all += partial[w];
  }
  *sum = all;
  return before + inclusive - value;
}

}  // namespace reformer::kernels::cuda
