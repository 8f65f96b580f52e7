// The forward pass of one warp: 16 queries and their running softmax.
#pragma once

#include "reformer/kernels/cuda/interval_attention/rows.cuh"
#include "reformer/kernels/cuda/interval_attention/sums.cuh"
#include "reformer/kernels/cuda/interval_attention/tables.cuh"

namespace reformer::kernels::cuda {

// Keys in shared memory, at consecutive places.
struct KeyTile {
  uint32_t keys;        // tile of D columns
  uint32_t values;      // likewise
  const float* scales;  // of each key's scores, with log2(e)
  const float* places;  // [earlier rounds, stride]: doubled
  int stride;
  int place;  // of the tile's row 0
};

// A row's weights are 2^(score - ref). Where unit keys and a short query bound
// its scores by kBound, the reference stays at 0 and nobody looks for maxima.
// Otherwise it follows the largest score, but only when that has left it by
// kSlack, so that the weighted values are hardly ever rescaled.
inline constexpr float kBound = 40;
inline constexpr float kSlack = 8;

template <int D>
struct Queries {
  uint32_t q[D / 16][4];  // A
  float o[D / 8][4];      // C: values weighted so far
  float ref[2];           // of rows g and g + 8
  float sum[2];           // this lane's share of the weights
  Span own[2];            // the interval in this round
  int self;               // place of the first query, -1: none is left out
  const Span* earlier;    // [earlier rounds, stride]: of row g
  int earlier_rounds;
  int earlier_stride;
  int g;
  int t;

  // All keys at rows [from, to) of the tile, multiples of 16.
  template <bool kBounded>
  __device__ __forceinline__ void attend(const KeyTile& tile, int from, int to,
                                         const LaneOffsets<D>& lane) {
    float first_key = doubled(tile.place + from + 2 * t);
    for (int row = from; row < to; row += 16) {
      float s[2][4];
#pragma unroll
      for (int step = 0; step < D / 16; ++step) {
        uint32_t b[4];
        load_b_rows<D>(b, tile.keys, row, step, lane);
        if (step == 0) {
          multiply(s[0], q[step], b[0], b[1]);
          multiply(s[1], q[step], b[2], b[3]);
        } else {
          multiply_add(s[0], q[step], b[0], b[1]);
          multiply_add(s[1], q[step], b[2], b[3]);
        }
      }
      mask<kBounded>(s, tile, row, first_key);
      if (tile.place + row == self)
        leave_out_self(s, kBounded ? 0 : -kInfinity);
      if constexpr (!kBounded) weigh(s);
      sum[0] += (s[0][0] + s[0][1]) + (s[1][0] + s[1][1]);
      sum[1] += (s[0][2] + s[0][3]) + (s[1][2] + s[1][3]);
      first_key += 32;
      uint32_t p[4];
      as_a(p, s);
#pragma unroll
      for (int step = 0; step < D / 16; ++step) {
        uint32_t b[4];
        load_b<D>(b, tile.values, row, step, lane);
        multiply_add(o[2 * step], p, b[0], b[1]);
        multiply_add(o[2 * step + 1], p, b[2], b[3]);
      }
    }
  }

 private:
  // Scores of keys that the query does not attend to here become -inf, others
  // are scaled; where they are bounded, all become weights at once.
  template <bool kBounded>
  __device__ __forceinline__ void mask(float (&s)[2][4], const KeyTile& tile,
                                       int row, float first_key) const {
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
        const bool hidden = visible[n][c] < 0;
        if constexpr (kBounded) {
          const float weight = exp2_of(s[n][c] * by - ref[c / 2]);
          s[n][c] = hidden ? 0 : weight;
        } else {
          s[n][c] = hidden ? -kInfinity : s[n][c] * by;
        }
      }
    }
  }

  // The diagonal of the 16 x 16 scores of these queries as keys.
  __device__ __forceinline__ void leave_out_self(float (&s)[2][4],
                                                 float instead) const {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (8 * n + 2 * t + (c & 1) == g + 8 * (c / 2)) s[n][c] = instead;
      }
    }
  }

  // Scores to weights.
  __device__ __forceinline__ void weigh(float (&s)[2][4]) {
    float top[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      top[half] = fmaxf(fmaxf(s[0][2 * half], s[0][2 * half + 1]),
                        fmaxf(s[1][2 * half], s[1][2 * half + 1]));
    }
    if (__any_sync(kAllLanes,
                   top[0] > ref[0] + kSlack || top[1] > ref[1] + kSlack)) {
      rescale(top);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float base = ref[half] == -kInfinity ? 0 : ref[half];
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        s[n][2 * half] = exp2_of(s[n][2 * half] - base);
        s[n][2 * half + 1] = exp2_of(s[n][2 * half + 1] - base);
      }
    }
  }

  __device__ __forceinline__ void rescale(const float (&top)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float largest = quad_max(top[half]);
      const float old = ref[half];
      if (largest > old + kSlack) ref[half] = largest;
      const float factor = ref[half] == old ? 1 : exp2_of(old - ref[half]);
      sum[half] *= factor;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        o[n][2 * half] *= factor;
        o[n][2 * half + 1] *= factor;
      }
    }
  }
};

}  // namespace reformer::kernels::cuda
