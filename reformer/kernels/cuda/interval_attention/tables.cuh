// What rounds say of rows, in shared memory: places of keys, intervals of
// queries.
#pragma once

#include "reformer/kernels/cuda/interval_attention/rows.cuh"

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

// Of the 16 x 16 pairs of a warp's queries and of keys from the tile's `row`
// on, as two fragments C: negative where the key is not for the query, outside
// its interval in this round or within it in an earlier one, where the pair
// counted.
//   queries    own, earlier, earlier_rounds, earlier_stride, t as Queries' are
//   tile       places and stride as KeyTile's are
//   first_key  doubled place of the lane's first key
template <class WarpQueries, class Tile>
__device__ __forceinline__ void find_visible(float (&visible)[2][4],
                                             const WarpQueries& queries,
                                             const Tile& tile, int row,
                                             float first_key) {
  const float from_centre[2] = {first_key - queries.own[0].centre,
                                first_key - queries.own[1].centre};
#pragma unroll
  for (int n = 0; n < 2; ++n) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      visible[n][c] = queries.own[c / 2].size -
                      fabsf(from_centre[c / 2] + (16 * n + 2 * (c & 1)));
    }
  }
  const int column = row + 2 * queries.t;
  const float* places = tile.places + column;
  const Span* old = queries.earlier;
#pragma unroll 2
  for (int e = 0; e < queries.earlier_rounds; ++e) {
    const Span low = old[0];
    const Span high = old[8];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float2 there = *reinterpret_cast<const float2*>(places + 8 * n);
      visible[n][0] = fminf(visible[n][0], low.outside(there.x));
      visible[n][1] = fminf(visible[n][1], low.outside(there.y));
      visible[n][2] = fminf(visible[n][2], high.outside(there.x));
      visible[n][3] = fminf(visible[n][3], high.outside(there.y));
    }
    places += tile.stride;
    old += queries.earlier_stride;
  }
}

// What rounds say of one row, on its way to the tables, a thread each. All of a
// row's elements lie side by side: where they are aligned, 16 bytes come by one
// load. Those of the first kAhead rounds are asked for by the constructor and
// wait in registers; store() asks for the rest itself.
inline constexpr int kAhead = 8;

// Its places as a key in earlier rounds; 0 of what is not real.
class RowPlaces {
 public:
  __device__ __forceinline__ RowPlaces(const HeadRound& head, int row)
      : from_(head.place + int64_t{max(row, 0)} * head.rounds),
        rounds_(is_real(row) ? head.round : 0) {
    const bool aligned = head.aligned && head.rounds % 4 == 0;
#pragma unroll
    for (int e = 0; e < kAhead; e += 4) {
      ahead_[e / 4] = load(from_ + e, rounds_ - e, aligned);
    }
  }

  // Doubled, every `stride` floats.
  __device__ __forceinline__ void store(float* to, int stride,
                                        int rounds) const {
#pragma unroll
    for (int e = 0; e < kAhead; e += 4) {
      const int4 x = ahead_[e / 4];
      if (e < rounds) to[e * stride] = doubled(x.x);
      if (e + 1 < rounds) to[(e + 1) * stride] = doubled(x.y);
      if (e + 2 < rounds) to[(e + 2) * stride] = doubled(x.z);
      if (e + 3 < rounds) to[(e + 3) * stride] = doubled(x.w);
    }
    for (int e = kAhead; e < rounds; ++e) {
      to[e * stride] = e < rounds_ ? doubled(__ldg(from_ + e)) : 0;
    }
  }

 private:
  // Four of which n are wanted.
  static __device__ __forceinline__ int4 load(const int32_t* from, int n,
                                              bool aligned) {
    int4 x{};
    if (n <= 0) return x;
    if (aligned) return __ldg(reinterpret_cast<const int4*>(from));
    x.x = __ldg(from);
    if (n > 1) x.y = __ldg(from + 1);
    if (n > 2) x.z = __ldg(from + 2);
    if (n > 3) x.w = __ldg(from + 3);
    return x;
  }

  const int32_t* from_;
  int rounds_;
  int4 ahead_[kAhead / 4];
};

// Its intervals as a query, in earlier rounds and in this one; of no row, the
// empty one at the end.
class RowIntervals {
 public:
  __device__ __forceinline__ RowIntervals(const HeadRound& head, int row)
      : from_(head.interval + int64_t{max(position_of(row), 0)} * head.rounds),
        rounds_(row == kNoRow ? 0 : head.round + 1),
        length_(head.length) {
    const bool aligned = head.aligned && head.rounds % 2 == 0;
#pragma unroll
    for (int e = 0; e < kAhead; e += 2) {
      ahead_[e / 2] = load(from_ + e, rounds_ - e, aligned);
    }
  }

  // Those before number `round` as spans, every `stride`; returns that one.
  __device__ __forceinline__ int2 store(Span* to, int stride, int round) const {
    int2 own{};
    const auto put = [&](int e, int2 x) {
      if (e < round) to[e * stride] = span_of(x);
      if (e == round) own = x;
    };
#pragma unroll
    for (int e = 0; e < kAhead; e += 2) {
      const int4 x = ahead_[e / 2];
      put(e, {x.x, x.y});
      put(e + 1, {x.z, x.w});
    }
    for (int e = kAhead; e <= round; ++e) {
      put(e, e < rounds_ ? __ldg(from_ + e) : int2{});
    }
    return rounds_ == 0 ? int2{length_, length_} : own;
  }

 private:
  // Two of which n are wanted.
  static __device__ __forceinline__ int4 load(const int2* from, int n,
                                              bool aligned) {
    if (n <= 0) return {};
    if (aligned) return __ldg(reinterpret_cast<const int4*>(from));
    const int2 x = __ldg(from);
    const int2 y = n > 1 ? __ldg(from + 1) : int2{};
    return {x.x, x.y, y.x, y.y};
  }

  const int2* from_;
  int rounds_;
  int length_;
  int4 ahead_[kAhead / 2];
};

}  // namespace reformer::kernels::cuda
