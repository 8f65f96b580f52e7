// What a block of interval attention reads: rows at places of one round's
// order.
#pragma once

#include "reformer/kernels/cuda/interval_attention/fragments.cuh"
#include "reformer/kernels/interval_attention.h"

namespace reformer::kernels::cuda {

// Places and intervals are compared as floats (interval_tables.cuh).
inline constexpr int64_t kMaxLength = 1 << 23;

inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;
inline constexpr float kInfinity = __builtin_huge_valf();

// Rows::head, on the device.
template <class T>
__device__ __forceinline__ T* head_of(const Rows<T>& rows, int64_t batch,
                                      int64_t head) {
  return rows.data + batch * rows.batch_stride + head * rows.head_stride;
}

// The row at a place: its position; or that it is padded; or that there is
// none. Rows that are not real are read as 0.
inline constexpr int kNoRow = -1;
__device__ __forceinline__ int padded_row(int position) {
  return -2 - position;
}
__device__ __forceinline__ bool is_real(int row) { return row >= 0; }
__device__ __forceinline__ int position_of(int row) {
  return row >= kNoRow ? row : -2 - row;
}

// A key's row, and the row of v that it offers: asked for once, not by each of
// the lanes that copy a part of it.
struct __align__(8) KeyRow {
  int row;
  int offered;
};
__device__ __forceinline__ bool is_real(const KeyRow& key) {
  return is_real(key.row);
}

// One round of one (batch, head).
struct HeadRound {
  __device__ HeadRound(const IntervalAttentionArgs<bf16>& args, int index,
                       int at_round)
      : rounds(static_cast<int>(args.rounds.rounds)),
        round(at_round),
        length(static_cast<int>(args.length)),
        d(static_cast<int>(args.d_head)),
        shared(args.k.data == nullptr) {
    const int64_t batch = index / static_cast<int>(args.heads);
    const int64_t head = index % static_cast<int>(args.heads);
    offered = OfferedValues(args.successors, batch, head, args.length);
    const RoundsView& view = args.rounds;
    order = view.order + batch * view.order_batch_stride +
            head * view.order_head_stride + int64_t{at_round} * length;
    place = view.place + batch * view.place_batch_stride +
            head * view.place_head_stride;
    interval = reinterpret_cast<const int2*>(
        view.interval + batch * view.interval_batch_stride +
        head * view.interval_head_stride);
    mask = args.mask ? args.mask + batch * args.length : nullptr;
    aligned = (reinterpret_cast<uintptr_t>(place) |
               reinterpret_cast<uintptr_t>(interval)) %
                  16 ==
              0;
  }

  __device__ __forceinline__ int row_at(int at) const {
    if (at < 0 || at >= length) return kNoRow;
    const int i = order[at];
    return mask != nullptr && !mask[i] ? padded_row(i) : i;
  }

  __device__ __forceinline__ KeyRow key_in(int row) const {
    return {row, offered.row(max(row, 0))};
  }

  const int32_t* order;  // of this round
  const int32_t* place;  // [length, rounds]
  const int2* interval;  // [length, rounds]
  const bool* mask;      // [length] or null
  OfferedValues offered;
  int rounds;
  int round;
  int length;
  int d;
  bool shared;
  bool aligned;  // place and interval, to 16 bytes
};

// Rows of a tensor and the tile that they are copied into.
struct RowsCopy {
  uint32_t tile;
  const bf16* from;
  int stride;
  bool values = false;  // those that keys offer
};
__device__ __forceinline__ int row_to_copy(int row, const RowsCopy&) {
  return max(row, 0);
}
__device__ __forceinline__ int row_to_copy(const KeyRow& key,
                                           const RowsCopy& copy) {
  return copy.values ? key.offered : max(key.row, 0);
}

// Starts the copy of rows `rows[0..n)` into rows [first, first + n) of each
// tile, first a multiple of 8. All threads of a block take part. Row: int, or
// KeyRow where values are copied.
template <int D, int kThreads, int kCopies, class Row>
__device__ __forceinline__ void copy_rows(const RowsCopy (&copies)[kCopies],
                                          int first, const Row* rows, int n,
                                          int d) {
  constexpr int kLanes = D <= 32 ? 4 : D <= 64 ? 8 : 16;  // of a row
  constexpr int kStep = kThreads / kLanes;
  constexpr bool kSwizzleStays = kStep % 8 == 0;
  const int chunk = threadIdx.x % kLanes;
  const int lane_row = threadIdx.x / kLanes;
  if (kLanes * kChunk > D && chunk * kChunk >= D) return;
  const bool within = chunk * kChunk < d;
  const int column = within ? chunk * kChunk : 0;
  uint32_t to = RowTile<D>::offset(first + lane_row, chunk);
#pragma unroll 2
  for (int r = lane_row; r < n; r += kStep) {
    const Row row = rows[r];
    const bool real = within && is_real(row);
#pragma unroll
    for (int c = 0; c < kCopies; ++c) {
      const int from = row_to_copy(row, copies[c]);
      copy_16(copies[c].tile + to,
              copies[c].from + (int64_t{from} * copies[c].stride + column),
              real);
    }
    to = kSwizzleStays ? to + kStep * RowTile<D>::kRowBytes
                       : RowTile<D>::offset(first + r + kStep, chunk);
  }
}

// Starts the copy of the interval in this round of the query in `row`.
__device__ __forceinline__ void copy_interval(int2* to, int row,
                                              const HeadRound& head) {
  if (row == kNoRow) {
    *to = {head.length, head.length};
    return;
  }
  copy_8(shared_address(to),
         head.interval + int64_t{position_of(row)} * head.rounds + head.round,
         true);
}

}  // namespace reformer::kernels::cuda
