// Tiles of bf16 rows in shared memory and how warps read them as operands of
// the tensor cores (instructions.cuh has their layouts A, B and C).
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "reformer/kernels/cuda/instructions.cuh"

namespace reformer::kernels::cuda {

using bf16 = __nv_bfloat16;

inline constexpr int kChunk = 8;  // bf16 elements of 16 bytes, copied together
inline constexpr unsigned kAllLanes = 0xffffffffu;

// A tile of rows of D elements in shared memory. Chunks are swizzled so that
// the same chunk of 8 consecutive rows lies in 8 different groups of banks.
template <int D>
struct RowTile {
  static constexpr int kRowBytes = D * 2;

  static __device__ __forceinline__ uint32_t offset(int row, int chunk) {
    const int swizzled =
        D % 64 == 0 ? chunk ^ (row & 7) : chunk ^ ((row >> 1) & 3);
    return static_cast<uint32_t>(row * kRowBytes + swizzled * 16);
  }
};

// Where a lane reads 16 rows of a tile, from the address of the first, which
// is a multiple of 8.
template <int D>
struct LaneOffsets {
  __device__ __forceinline__ explicit LaneOffsets(int lane)
      : along(RowTile<D>::offset(lane & 15, lane >> 4)),
        across(RowTile<D>::offset((lane & 7) + ((lane >> 4) << 3),
                                  (lane >> 3) & 1)) {}

  // From columns 0 to columns 16 step: the swizzle is an exclusive or.
  static __device__ __forceinline__ uint32_t at_step(uint32_t address,
                                                     int step) {
    if constexpr (D % 64 == 0) return address ^ (step * 32);
    return (address ^ ((step & 1) * 32)) + (step >> 1) * 64;
  }

  uint32_t along;   // 8 x 8 blocks of an A: down first, then right
  uint32_t across;  // right first
};

// A: rows [row, row + 16), columns [16 step, 16 step + 16) of a tile.
template <int D>
__device__ __forceinline__ void load_a(uint32_t (&a)[4], uint32_t tile, int row,
                                       int step, const LaneOffsets<D>& lane) {
  load_4(a, LaneOffsets<D>::at_step(
                tile + row * RowTile<D>::kRowBytes + lane.along, step));
}

// Two B's whose columns are the rows [row, row + 8) and [row + 8, row + 16) of
// a tile: the matmul with its transpose, columns [16 step, 16 step + 16).
template <int D>
__device__ __forceinline__ void load_b_rows(uint32_t (&b)[4], uint32_t tile,
                                            int row, int step,
                                            const LaneOffsets<D>& lane) {
  load_4(b, LaneOffsets<D>::at_step(
                tile + row * RowTile<D>::kRowBytes + lane.across, step));
}

// Two B's whose rows are the rows [row, row + 16) of a tile, of its columns
// [16 step, 16 step + 8) and the next 8.
template <int D>
__device__ __forceinline__ void load_b(uint32_t (&b)[4], uint32_t tile, int row,
                                       int step, const LaneOffsets<D>& lane) {
  load_4_transposed(b,
                    LaneOffsets<D>::at_step(
                        tile + row * RowTile<D>::kRowBytes + lane.along, step));
}

__device__ __forceinline__ uint32_t packed(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}

// The C's of two neighbouring 16 x 8 matmuls as one A.
__device__ __forceinline__ void as_a(uint32_t (&a)[4], const float (&c)[2][4]) {
  a[0] = packed(c[0][0], c[0][1]);
  a[1] = packed(c[0][2], c[0][3]);
  a[2] = packed(c[1][0], c[1][1]);
  a[3] = packed(c[1][2], c[1][3]);
}

// Of the four lanes that share a row of C.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

}  // namespace reformer::kernels::cuda
