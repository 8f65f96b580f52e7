// What a warp holds of 16 rows in the layout of C (fragments.cuh), and where it
// is kept between rounds and at the end.
#pragma once

#include "reformer/kernels/cuda/interval_attention/rows.cuh"

namespace reformer::kernels::cuda {

// Sums of 16 rows in the layout of C, between rounds: fp32, [length, D], the
// elements of a row in the order in which lanes hold them, 16 bytes at a time.
template <int D>
__device__ __forceinline__ void load_sums(float (&c)[D / 8][4],
                                          const float* sums,
                                          const int (&row)[2], int t) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = max(position_of(row[half]), 0);  // of no row: anything
    const float* from = sums + int64_t{i} * D + 4 * t;
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      const float4 x = __ldcs(reinterpret_cast<const float4*>(from + n * 8));
      c[n][2 * half] = x.x;
      c[n][2 * half + 1] = x.y;
      c[n + 1][2 * half] = x.z;
      c[n + 1][2 * half + 1] = x.w;
    }
  }
}
template <int D>
__device__ __forceinline__ void add_sums(float (&c)[D / 8][4],
                                         const float* sums, const int (&row)[2],
                                         int t) {
  float before[D / 8][4];
  load_sums<D>(before, sums, row, t);
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) c[n][i] += before[n][i];
  }
}

// Adds them later: a warp copies its 16 rows of sums into rows `at` and on of
// two tiles that nobody reads any more, half a row each, and finds them there.
template <int D>
__device__ __forceinline__ void copy_sums(const uint32_t (&tiles)[2], int at,
                                          const float* sums, const int* rows,
                                          int lane) {
  constexpr int kChunks = D / 4;  // of 16 bytes in a row
  constexpr int kLanes = D <= 32 ? 8 : D <= 64 ? 16 : 32;  // of a row
  const int chunk = lane % kLanes;
  if (kLanes > kChunks && chunk >= kChunks) return;
  const uint32_t tile = tiles[chunk / (D / 8)];
#pragma unroll 4
  for (int r = lane / kLanes; r < 16; r += 32 / kLanes) {
    const int row = max(position_of(rows[r]), 0);
    copy_16_once(tile + RowTile<D>::offset(at + r, chunk % (D / 8)),
                 sums + (int64_t{row} * D + chunk * 4));
  }
}
template <int D>
__device__ __forceinline__ void add_copied_sums(
    float (&c)[D / 8][4], const unsigned char* const (&tiles)[2], int at,
    int t) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      const int chunk = 2 * n + t;
      const unsigned char* tile = tiles[2 * n / (D / 8)];
      const float4 x = *reinterpret_cast<const float4*>(
          tile + RowTile<D>::offset(at + 8 * half, chunk % (D / 8)));
      c[n][2 * half] += x.x;
      c[n][2 * half + 1] += x.y;
      c[n + 1][2 * half] += x.z;
      c[n + 1][2 * half + 1] += x.w;
    }
  }
}
template <int D>
__device__ __forceinline__ void store_sums(const float (&c)[D / 8][4],
                                           float* sums, const int (&row)[2],
                                           int t) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (row[half] == kNoRow) continue;
    float* to = sums + int64_t{position_of(row[half])} * D + 4 * t;
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      const float4 x = {c[n][2 * half], c[n][2 * half + 1], c[n + 1][2 * half],
                        c[n + 1][2 * half + 1]};
      __stcs(reinterpret_cast<float4*>(to + n * 8), x);
    }
  }
}

// The 4 x 4 transpose of four words in each of the four lanes of a row.
__device__ __forceinline__ void transpose_quad(uint32_t (&w)[4], int t) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (j & bit) continue;
      const bool upper = (t & bit) != 0;
      const uint32_t sent = upper ? w[j] : w[j | bit];
      const uint32_t got = __shfl_xor_sync(kAllLanes, sent, bit);
      if (upper) {
        w[j] = got;
      } else {
        w[j | bit] = got;
      }
    }
  }
}

// Rows in the layout of C, rounded to bf16, 16 bytes a lane.
template <int D>
__device__ __forceinline__ void store_rows(const float (&c)[D / 8][4], bf16* to,
                                           int64_t stride, const int (&row)[2],
                                           int d, int t) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int n = 0; n < D / 8; n += 4) {
      uint32_t w[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        w[j] = packed(c[n + j][2 * half], c[n + j][2 * half + 1]);
      }
      transpose_quad(w, t);
      const int column = (n + t) * 8;
      if (row[half] == kNoRow || column >= d) continue;
      bf16* at = to + position_of(row[half]) * stride + column;
      *reinterpret_cast<uint4*>(at) = {w[0], w[1], w[2], w[3]};
    }
  }
}

// The two elements of a C at n-tile `n` of a row in a tile.
template <int D>
__device__ __forceinline__ float2 tile_pair(const unsigned char* tile, int row,
                                            int n, int t) {
  const auto* at = reinterpret_cast<const __nv_bfloat162*>(
      tile + RowTile<D>::offset(row, n) + t * 4);
  return __bfloat1622float2(*at);
}

// Likewise of a row in memory, 0 from column d on.
__device__ __forceinline__ float2 row_pair(const bf16* row, int n, int t,
                                           int d) {
  const int column = 8 * n + 2 * t;
  if (column >= d) return {0, 0};
  return __bfloat1622float2(
      *reinterpret_cast<const __nv_bfloat162*>(row + column));
}

}  // namespace reformer::kernels::cuda
