// Tiles of bf16 rows in shared memory and the tensor-core instructions that
// read them (mma.sync.m16n8k16, compute capability 8.0).
//
// Layouts, with lane = 4 g + t:
//   A, 16 x 16   a[0..3]: rows g, g + 8, g, g + 8; columns 2t, 2t + 1, of the
//                first eight columns in a[0], a[1], of the last in a[2], a[3]
//   B, 16 x 8    b[0], b[1]: column g, rows 2t, 2t + 1, and the same + 8
//   C, 16 x 8    c[0..3]: row g columns 2t, 2t + 1, then row g + 8
// So the C of one product, in pairs of bf16, is the A of the next.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace reformer::kernels::cuda {

using bf16 = __nv_bfloat16;

inline constexpr int kChunk = 8;  // bf16 numbers of 16 bytes, copied together
inline constexpr unsigned kAllLanes = 0xffffffffu;

// A tile of rows of D numbers in shared memory. Chunks are swizzled so that
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

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Asynchronous copies to shared memory. `bytes` 0 writes zeros.
__device__ __forceinline__ void copy_16(uint32_t to, const void* from,
                                        bool real) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(from), "r"(real ? 16 : 0)
               : "memory");
}
// Of what is read once: it does not displace from L2 what is read again.
__device__ __forceinline__ void copy_16_once(uint32_t to, const void* from) {
  asm volatile(
      "{\n"
      ".reg .b64 policy;\n"
      "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, policy;\n"
      "}" ::"r"(to),
      "l"(from)
      : "memory");
}
__device__ __forceinline__ void copy_8(uint32_t to, const void* from,
                                       bool real) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to),
               "l"(from), "r"(real ? 8 : 0)
               : "memory");
}
__device__ __forceinline__ void copy_4(uint32_t to, const void* from,
                                       bool real) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to),
               "l"(from), "r"(real ? 4 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until all but the last kPending groups of this thread have arrived.
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

__device__ __forceinline__ void load_4(uint32_t (&r)[4], uint32_t address) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(address));
}
__device__ __forceinline__ void load_4_transposed(uint32_t (&r)[4],
                                                  uint32_t address) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(address));
}

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
// a tile: the product with its transpose, columns [16 step, 16 step + 16).
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

__device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4],
                                         uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.f));
}
__device__ __forceinline__ void multiply_add(float (&c)[4],
                                             const uint32_t (&a)[4],
                                             uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32_t packed(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}

// The C's of two neighbouring 16 x 8 products as one A.
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

// 2^x, 0 for -inf.
__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace reformer::kernels::cuda
