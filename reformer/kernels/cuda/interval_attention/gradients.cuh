// The backward pass of one warp: 16 rows, first as keys, then as queries.
//
//   p_ij = 2^(s_ij log2(e) - z_i),  ds_ij = p_ij (do_i . v_j - delta_i)
//   dv_j += p_ij do_i,  dk_j += ds_ij q_i,  dq_i += ds_ij k_j
#pragma once

#include "reformer/kernels/cuda/interval_attention/rows.cuh"
#include "reformer/kernels/cuda/interval_attention/sums.cuh"
#include "reformer/kernels/cuda/interval_attention/tables.cuh"

namespace reformer::kernels::cuda {

// Queries in shared memory, at consecutive places.
struct GradQueryTile {
  uint32_t q;  // tile of D columns
  uint32_t d_output;
  const int2* interval;      // in this round
  const Span* span;          // the same
  const Span* earlier;       // [earlier rounds, stride]: in those before
  const float2* statistics;  // z and delta
  int stride;
  int place;  // of the tile's row 0
};

// Keys in shared memory, likewise.
struct GradKeyTile {
  uint32_t keys;
  uint32_t values;
  const float* scales;  // of each key's scores
  const float* places;  // [earlier rounds, stride]: doubled
  int stride;
  int place;
};

// A's of 16 rows that all matmuls of a warp begin with: in registers, or for
// wide rows, whose sums need these, read again each time.
template <int D, bool kHeld = (D <= 64)>
struct OwnRows {
  static constexpr bool kInRegisters = true;
  uint32_t a[D / 16][4];
  __device__ __forceinline__ OwnRows(uint32_t tile, int row,
                                     const LaneOffsets<D>& lane) {
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      load_a<D>(a[step], tile, row, step, lane);
    }
  }
  __device__ __forceinline__ void get(uint32_t (&to)[4], int step,
                                      const LaneOffsets<D>&) const {
#pragma unroll
    for (int r = 0; r < 4; ++r) to[r] = a[step][r];
  }
};
template <int D>
struct OwnRows<D, false> {
  static constexpr bool kInRegisters = false;
  uint32_t tile;
  int row;
  __device__ __forceinline__ OwnRows(uint32_t tile, int row,
                                     const LaneOffsets<D>&)
      : tile(tile), row(row) {}
  __device__ __forceinline__ void get(uint32_t (&to)[4], int step,
                                      const LaneOffsets<D>& lane) const {
    load_a<D>(to, tile, row, step, lane);
  }
};

// c = own rows times the transpose of rows [row, row + 16) of a tile.
template <int D>
__device__ __forceinline__ void multiply_rows(float (&c)[2][4],
                                              const OwnRows<D>& own,
                                              uint32_t tile, int row,
                                              const LaneOffsets<D>& lane) {
#pragma unroll
  for (int step = 0; step < D / 16; ++step) {
    uint32_t a[4];
    uint32_t b[4];
    own.get(a, step, lane);
    load_b_rows<D>(b, tile, row, step, lane);
    if (step == 0) {
      multiply(c[0], a, b[0], b[1]);
      multiply(c[1], a, b[2], b[3]);
    } else {
      multiply_add(c[0], a, b[0], b[1]);
      multiply_add(c[1], a, b[2], b[3]);
    }
  }
}

// sums += weights times rows [row, row + 16) of a tile.
template <int D>
__device__ __forceinline__ void add_rows(float (&sums)[D / 8][4],
                                         const uint32_t (&a)[4], uint32_t tile,
                                         int row, const LaneOffsets<D>& lane) {
#pragma unroll
  for (int step = 0; step < D / 16; ++step) {
    uint32_t b[4];
    load_b<D>(b, tile, row, step, lane);
    multiply_add(sums[2 * step], a, b[0], b[1]);
    multiply_add(sums[2 * step + 1], a, b[2], b[3]);
  }
}

// ds of the 16 x 16 pairs of keys and queries that are both the block's own:
// where they are kept from the pass over queries, as an A with a row for each
// key, to that over keys, as an A with a row for each query.
inline constexpr int kKeptTileBytes = 512;
__device__ __forceinline__ void keep_transposed(uint32_t at,
                                                const uint32_t (&a)[4],
                                                int lane) {
  const uint32_t to = at + lane * 4;
  store_word(to, a[0]);
  store_word(to + 128, a[2]);
  store_word(to + 256, a[1]);
  store_word(to + 384, a[3]);
}
// sums += those of 16 queries and the block's keys at rows [from, to), times
// these keys.
template <int D>
__device__ __forceinline__ void add_kept(float (&sums)[D / 8][4], uint32_t kept,
                                         uint32_t keys, int from, int to,
                                         int lane,
                                         const LaneOffsets<D>& offsets) {
  for (int row = from; row < to; row += 16) {
    uint32_t a[4];
    load_4_transposed(a, kept + row / 16 * kKeptTileBytes + lane * 16);
    add_rows<D>(sums, a, keys, row, offsets);
  }
}

template <int D>
__device__ __forceinline__ void set_zero(float (&c)[D / 8][4]) {
#pragma unroll
  for (int n = 0; n < D / 8; ++n) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
}

// The gradient of unit keys k, divided by |q|, to that of the rows q they were
// made of: (dk - k (k . dk)) / |q|.
template <int D>
__device__ __forceinline__ void project(float (&d_keys)[D / 8][4],
                                        const unsigned char* tile, int row,
                                        const float (&inverse)[2], int t) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float dot = 0;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const float2 q = tile_pair<D>(tile, row + 8 * half, n, t);
      dot += d_keys[n][2 * half] * q.x + d_keys[n][2 * half + 1] * q.y;
    }
    dot = quad_sum(dot) * inverse[half] * inverse[half];
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const float2 q = tile_pair<D>(tile, row + 8 * half, n, t);
      float& x = d_keys[n][2 * half];
      float& y = d_keys[n][2 * half + 1];
      x -= q.x * dot;
      y -= q.y * dot;
    }
  }
}

// Sets the diagonal of 16 x 16 weights to 0: a row as its own key.
__device__ __forceinline__ void clear_diagonal(float (&weights)[2][4], int g,
                                               int t) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (8 * n + 2 * t + (c & 1) == g + 8 * (c / 2)) weights[n][c] = 0;
    }
  }
}

template <int D>
struct OwnKeys {
  OwnRows<D> keys;
  OwnRows<D> values;
  float scale[2];       // of rows g and g + 8
  float place[2];       // doubled
  int first;            // the place of the first key
  bool without_self;    // a query does not see itself
  const float* places;  // [earlier rounds, stride]: of row g
  int earlier_rounds;
  int stride;
  uint32_t kept;  // ds of these keys, of the block's first 16 queries
  int g;
  int t;

  // All queries at rows [from, to) of the tile that may see these keys, at
  // most 32 groups of 16; those below kKeptRows are the block's own.
  template <int kKeptRows>
  __device__ __forceinline__ void collect(float (&d_keys)[D / 8][4],
                                          float (&d_values)[D / 8][4],
                                          const GradQueryTile& tile, int from,
                                          int to,
                                          const LaneOffsets<D>& lane) const {
    const int lane_row = from + 16 * (4 * g + t);
    unsigned groups = __ballot_sync(
        kAllLanes, lane_row < to && tile.interval[lane_row].x < first + 16 &&
                       tile.interval[lane_row + 15].y > first);
    for (; groups != 0; groups &= groups - 1) {
      const int row = from + 16 * (__ffs(groups) - 1);
      float s[2][4];
      float dp[2][4];
      multiply_rows<D>(s, keys, tile.q, row, lane);
      multiply_rows<D>(dp, values, tile.d_output, row, lane);
      weigh(s, tile, row);
      if (without_self && tile.place + row == first) clear_diagonal(s, g, t);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float4 stats = *reinterpret_cast<const float4*>(
            tile.statistics + row + 8 * n + 2 * t);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          dp[n][c] = s[n][c] * (dp[n][c] - ((c & 1) ? stats.w : stats.y)) *
                     scale[c / 2];
        }
      }
      uint32_t a[4];
      as_a(a, s);
      add_rows<D>(d_values, a, tile.d_output, row, lane);
      as_a(a, dp);
      if (row < kKeptRows) {
        keep_transposed(kept + row * (kKeptRows / 16 * kKeptTileBytes / 16), a,
                        4 * g + t);
      }
      add_rows<D>(d_keys, a, tile.q, row, lane);
    }
  }

 private:
  // s to p.
  __device__ __forceinline__ void weigh(float (&s)[2][4],
                                        const GradQueryTile& tile,
                                        int row) const {
    const int column = row + 2 * t;
    float visible[2][4];  // negative where the key is not for this query
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float4 both =
          *reinterpret_cast<const float4*>(tile.span + column + 8 * n);
      const Span left = {both.x, both.y};
      const Span right = {both.z, both.w};
      visible[n][0] = left.size - fabsf(place[0] - left.centre);
      visible[n][1] = right.size - fabsf(place[0] - right.centre);
      visible[n][2] = left.size - fabsf(place[1] - left.centre);
      visible[n][3] = right.size - fabsf(place[1] - right.centre);
    }
    const Span* old = tile.earlier + column;
    const float* there = places;
#pragma unroll 2
    for (int e = 0; e < earlier_rounds; ++e) {
      const float low = there[0];
      const float high = there[8];
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float4 both = *reinterpret_cast<const float4*>(old + 8 * n);
        const Span left = {both.x, both.y};
        const Span right = {both.z, both.w};
        visible[n][0] = fminf(visible[n][0], left.outside(low));
        visible[n][1] = fminf(visible[n][1], right.outside(low));
        visible[n][2] = fminf(visible[n][2], left.outside(high));
        visible[n][3] = fminf(visible[n][3], right.outside(high));
      }
      old += tile.stride;
      there += stride;
    }
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float4 stats =
          *reinterpret_cast<const float4*>(tile.statistics + column + 8 * n);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float p = exp2_of(s[n][c] * (scale[c / 2] * kLog2E) -
                                ((c & 1) ? stats.z : stats.x));
        s[n][c] = visible[n][c] < 0 ? 0 : p;
      }
    }
  }
};

template <int D>
struct OwnQueries {
  OwnRows<D> q;
  OwnRows<D> d_output;
  float z[2];  // of rows g and g + 8
  float delta[2];
  Span own[2];  // the interval in this round
  int first;    // the place of the first query
  bool without_self;
  const Span* earlier;  // [earlier rounds, stride]: of row g
  int earlier_rounds;
  int earlier_stride;
  int g;
  int t;

  // All keys at rows [from, to) of the tile, multiples of 16.
  __device__ __forceinline__ void collect(float (&d_queries)[D / 8][4],
                                          const GradKeyTile& tile, int from,
                                          int to,
                                          const LaneOffsets<D>& lane) const {
    float first_key = doubled(tile.place + from + 2 * t);
    for (int row = from; row < to; row += 16) {
      float s[2][4];
      float dp[2][4];
      multiply_rows<D>(s, q, tile.keys, row, lane);
      multiply_rows<D>(dp, d_output, tile.values, row, lane);
      weigh(s, dp, tile, row, first_key);
      if (without_self && tile.place + row == first) clear_diagonal(dp, g, t);
      uint32_t a[4];
      as_a(a, dp);
      add_rows<D>(d_queries, a, tile.keys, row, lane);
      first_key += 32;
    }
  }

 private:
  // dp to ds times the key's scale.
  __device__ __forceinline__ void weigh(const float (&s)[2][4],
                                        float (&dp)[2][4],
                                        const GradKeyTile& tile, int row,
                                        float first_key) const {
    const int column = row + 2 * t;
    float visible[2][4];
    find_visible(visible, *this, tile, row, first_key);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float2 scale =
          *reinterpret_cast<const float2*>(tile.scales + column + 8 * n);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float by = (c & 1) ? scale.y : scale.x;
        const float p = exp2_of(s[n][c] * (by * kLog2E) - z[c / 2]);
        const float ds = p * (dp[n][c] - delta[c / 2]) * by;
        dp[n][c] = visible[n][c] < 0 ? 0 : ds;
      }
    }
  }
};

}  // namespace reformer::kernels::cuda
