// What rounds say of rows, in shared memory: places of keys, intervals of
// queries.
#pragma once

#include "reformer/kernels/cuda/interval_rows.cuh"

namespace reformer::kernels::cuda {

// How deep a place lies in an interval, on floats: integers share the pipe of
// comparisons and selections, which is the busiest, floats do not. Twice the
// place against the interval's centre and size, both doubled too: exact in
// fp32 below kMaxLength, and odd, so never 0.
struct __align__(8) Span {
  float centre;  // begin + end - 1
  float size;    // end - begin
  // Negative within the interval.
  __device__ __forceinline__ float outside(float doubled_place) const {
    return fabsf(doubled_place - centre) - size;
  }
};
__device__ __forceinline__ Span span_of(int2 interval) {
  return {static_cast<float>(interval.x + interval.y - 1),
          static_cast<float>(interval.y - interval.x)};
}
__device__ __forceinline__ float doubled(int place) {
  return static_cast<float>(2 * place);
}

// What earlier rounds say of one row, a thread each: its places as a key or
// its intervals as a query, every `stride` elements. They are copied as they
// are and turned into floats, in place, by the thread that copied them, when
// they have arrived.
__device__ __forceinline__ void copy_places(float* to, int stride, int row,
                                            const HeadRound& head) {
  const int32_t* from =
      head.place + (is_real(row) ? int64_t{row} * head.rounds : 0);
  uint32_t address = shared_address(to);
  for (int e = 0; e < head.round; ++e) {
    copy_4(address, from + e, is_real(row));
    address += stride * 4;
  }
}
__device__ __forceinline__ void convert_places(float* at, int stride,
                                               int rounds) {
  for (int e = 0; e < rounds; ++e) {
    at[e * stride] = doubled(reinterpret_cast<const int&>(at[e * stride]));
  }
}
__device__ __forceinline__ void copy_intervals(Span* to, int stride, int row,
                                               const HeadRound& head) {
  const int2* from =
      head.interval + (is_real(row) ? int64_t{row} * head.rounds : 0);
  uint32_t address = shared_address(to);
  for (int e = 0; e < head.round; ++e) {
    copy_8(address, from + e, is_real(row));
    address += stride * 8;
  }
}
__device__ __forceinline__ void convert_intervals(Span* at, int stride,
                                                  int rounds) {
  for (int e = 0; e < rounds; ++e) {
    at[e * stride] = span_of(reinterpret_cast<const int2&>(at[e * stride]));
  }
}

}  // namespace reformer::kernels::cuda
