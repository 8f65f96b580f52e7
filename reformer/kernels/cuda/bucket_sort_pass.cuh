// One pass of the counting sort: count, sum up, place.
#pragma once

#include "reformer/kernels/bucket_sort.h"
#include "reformer/kernels/cuda/block_scan.cuh"

namespace reformer::kernels::cuda {

inline constexpr int kSortThreads = 512;
inline constexpr int kSortWarps = kSortThreads / 32;
inline constexpr int kSumThreads = 1024;

// The keys of one round of one head: bucket, or n_buckets where padded.
struct Keys {
  const uint16_t* buckets;  // null: natural order
  const bool* mask;         // null: all are real
  int n_buckets;

  // `head` counts those of the whole batch. Indices are 32-bit numbers: a
  // division of 64-bit ones is a hundred instructions.
  __device__ Keys(const BucketSortArgs& args, unsigned head, unsigned round)
      : n_buckets(static_cast<int>(args.n_buckets)) {
    const auto natural = static_cast<unsigned>(args.natural_rounds);
    const int64_t row =
        int64_t{head} * (args.rounds - natural) + round - natural;
    buckets = round < natural ? nullptr : args.buckets + row * args.length;
    mask = args.mask ? args.mask + head / static_cast<unsigned>(args.heads) *
                                       args.length
                     : nullptr;
  }
  __device__ Keys(const BucketSortArgs& args, unsigned row)
      : Keys(args, row / static_cast<unsigned>(args.rounds),
             row % static_cast<unsigned>(args.rounds)) {}

  __device__ __forceinline__ int of(int i) const {
    if (mask && !mask[i]) return n_buckets;
    return buckets ? min(int{buckets[i]}, n_buckets - 1) : 0;
  }
};

// One pass: sorts by (key >> shift) & (2^bits - 1).
struct Pass {
  BucketSortArgs args;
  const int32_t* from;  // [rows, length]: the order so far; null: natural
  int32_t* order;       // [rows, length], written
  // The keys in the order of `from`, and as this pass leaves them: gathering
  // them anew would cost more than all the rest. Null where not needed.
  const uint16_t* keys_from;  // [rows, length]
  uint16_t* keys;             // likewise, written
  int32_t* place;             // [rows, length], written; null: not yet
  int32_t* counts;  // [rows, tiles, digits]: of the tiles before, in a row
  int32_t* begins;  // [rows, begins_stride]: where each digit begins
  int64_t begins_stride;
  unsigned tiles;
  int shift;
  int bits;
  int digits;

  __device__ __forceinline__ int digit_of(int key) const {
    return (key >> shift) & ((1 << bits) - 1);
  }
};

// The keys of one tile, in the order that the pass begins with.
template <bool kFirstPass>
struct Tile {
  Keys keys;              // from the tile's begin on in the first pass
  const int32_t* from;    // the later pass's, from the tile's begin on
  const uint16_t* known;  // likewise; null: gathered
  int begin;
  int n;

  __device__ Tile(const Pass& pass, unsigned row, int64_t tile_begin, int size)
      : keys(pass.args, row),
        from(nullptr),
        known(nullptr),
        begin(static_cast<int>(tile_begin)),
        n(static_cast<int>(min(int64_t{size}, pass.args.length - tile_begin))) {
    const int64_t first = int64_t{row} * pass.args.length + tile_begin;
    if (kFirstPass) {
      if (keys.buckets) keys.buckets += tile_begin;
      if (keys.mask) keys.mask += tile_begin;
    } else {
      from = pass.from + first;
      if (pass.keys_from) known = pass.keys_from + first;
    }
  }

  __device__ __forceinline__ int position(int at) const {
    return kFirstPass ? begin + at : from[at];
  }
  __device__ __forceinline__ int key(int at) const {
    if (kFirstPass) return keys.of(at);
    return known ? int{known[at]} : keys.of(from[at]);
  }

  // The digits of a thread's keys `first`, `first + step`, ...; -1 beyond the
  // end. All loads at once.
  template <int kPerThread>
  __device__ __forceinline__ void load_digits(const Pass& pass, int first,
                                              int step,
                                              int (&digit)[kPerThread]) const {
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const int at = first + k * step;
      digit[k] = at < n ? key(at) : -1;
    }
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      if (digit[k] >= 0) digit[k] = pass.digit_of(digit[k]);
    }
  }
};

// A block counts the digits of one tile.
template <int kPerThread, bool kFirstPass>
__global__ __launch_bounds__(kSortThreads) void count_digits(
    const __grid_constant__ Pass pass) {
  extern __shared__ int shared[];
  constexpr int kTile = kSortThreads * kPerThread;
  for (int d = threadIdx.x; d < pass.digits; d += kSortThreads) shared[d] = 0;
  const Tile<kFirstPass> tile(pass, blockIdx.x / pass.tiles,
                              int64_t{blockIdx.x % pass.tiles} * kTile, kTile);
  int digit[kPerThread];
  tile.load_digits(pass, threadIdx.x, kSortThreads, digit);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    if (digit[k] >= 0) atomicAdd(&shared[digit[k]], 1);
  }
  __syncthreads();
  int32_t* out = pass.counts + int64_t{blockIdx.x} * pass.digits;
  for (int d = threadIdx.x; d < pass.digits; d += kSortThreads)
    out[d] = shared[d];
}

// A block sums up one row: counts become those of the tiles before.
static __global__ __launch_bounds__(kSumThreads) void sum_counts(
    const __grid_constant__ Pass pass) {
  __shared__ int partial[32];
  const int64_t row = blockIdx.x;
  int32_t* counts = pass.counts + row * pass.tiles * pass.digits;
  int32_t* begins = pass.begins + int64_t{row} * pass.begins_stride;
  int before = 0;
  for (int first = 0; first < pass.digits; first += kSumThreads) {
    const int d = first + static_cast<int>(threadIdx.x);
    int total = 0;
    if (d < pass.digits) {
      constexpr int kAtOnce = 8;  // loads under way
      for (int64_t tile = 0; tile < pass.tiles; tile += kAtOnce) {
        int own[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          own[k] =
              tile + k < pass.tiles ? counts[(tile + k) * pass.digits + d] : 0;
        }
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          if (tile + k < pass.tiles)
            counts[(tile + k) * pass.digits + d] = total;
          total += own[k];
        }
      }
    }
    int sum;
    const int begin = before + exclusive_sum<kSumThreads>(total, partial, &sum);
    if (d < pass.digits) begins[d] = begin;
    before += sum;
    __syncthreads();
  }
  // The end of the last bucket, where padding has no digit of its own.
  if (threadIdx.x == 0 && pass.digits < pass.begins_stride) {
    begins[pass.digits] = before;
  }
}

// Which lanes have this digit; -1 is one too. A vote for each bit:
// __match_any_sync takes longer where most digits differ.
__device__ __forceinline__ unsigned lanes_of(int digit, int bits) {
  unsigned same = __ballot_sync(0xffffffffu, digit >= 0);
  same = digit >= 0 ? same : ~same;
  for (int bit = 0; bit < bits; ++bit) {
    const bool set = (digit >> bit & 1) != 0;
    const unsigned others = __ballot_sync(0xffffffffu, set);
    same &= set ? others : ~others;
  }
  return same;
}

// A block puts one tile in order. Each warp ranks its own run of keys, 32 at a
// time, among those of the same digit before it; sums over the warps make these
// ranks within the tile. The tile is put in order in shared memory, so that the
// keys of a digit are written side by side.
//
// Shared memory: what to add to a digit's places in the tile for those in the
// row, [digits]; then counters [warps, digits] and, when these are no longer
// needed, the tile in order.
template <int kPerThread, bool kFirstPass>
__global__ __launch_bounds__(kSortThreads, 3) void place_digits(
    const __grid_constant__ Pass pass) {
  extern __shared__ int shared[];
  __shared__ int partial[32];
  constexpr int kTile = kSortThreads * kPerThread;
  int* to_row = shared;
  const int stride = (pass.digits + 1) & ~1;  // whole words
  auto* counters = reinterpret_cast<uint16_t*>(shared + pass.digits);
  auto* in_order = reinterpret_cast<uint32_t*>(shared + pass.digits);

  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const unsigned row = blockIdx.x / pass.tiles;
  const Tile<kFirstPass> tile(pass, row,
                              int64_t{blockIdx.x % pass.tiles} * kTile, kTile);

  for (int at = threadIdx.x; at < kSortWarps * stride / 2; at += kSortThreads) {
    in_order[at] = 0;  // two counters
  }
  int digit[kPerThread];
  const int run = warp * 32 * kPerThread + lane;
  tile.load_digits(pass, run, 32, digit);
  __syncthreads();

  // From here on the digit is the lower half, the rank the upper one.
  uint16_t* own = counters + warp * stride;
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    const bool there = digit[k] >= 0;
    const unsigned same = lanes_of(digit[k], pass.bits);
    const int before = __popc(same & ((1u << lane) - 1));
    const int counted = there ? own[digit[k]] : 0;
    __syncwarp();
    if (before == 0 && there) {
      own[digit[k]] = static_cast<uint16_t>(counted + __popc(same));
    }
    if (there) digit[k] |= (counted + before) << 16;
    __syncwarp();
  }
  __syncthreads();

  const int32_t* begins = pass.begins + int64_t{row} * pass.begins_stride;
  int before = 0;
  for (int first = 0; first < pass.digits; first += kSortThreads) {
    const int d = first + static_cast<int>(threadIdx.x);
    int total = 0;
    if (d < pass.digits) {
#pragma unroll
      for (int w = 0; w < kSortWarps; ++w) total += counters[w * stride + d];
    }
    int sum;
    const int begin =
        before + exclusive_sum<kSortThreads>(total, partial, &sum);
    if (d < pass.digits) {
      int at = begin;
#pragma unroll
      for (int w = 0; w < kSortWarps; ++w) {
        const int counted = counters[w * stride + d];
        counters[w * stride + d] = static_cast<uint16_t>(at);
        at += counted;
      }
      to_row[d] = 0;
      if (pass.counts) {
        to_row[d] = begins[d] - begin +
                    pass.counts[int64_t{blockIdx.x} * pass.digits + d];
      } else if (pass.begins) {
        pass.begins[int64_t{row} * pass.begins_stride + d] = begin;
      }
    }
    before += sum;
    __syncthreads();
  }
  if (!pass.counts && pass.begins && threadIdx.x == 0 &&
      pass.digits < pass.begins_stride) {
    pass.begins[int64_t{row} * pass.begins_stride + pass.digits] = before;
  }

#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    if (digit[k] >= 0) digit[k] += own[digit[k] & 0xFFFF] << 16;
  }
  __syncthreads();

  const int64_t first = int64_t{row} * pass.args.length;
  int32_t* place = pass.place ? pass.place + first : nullptr;
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    if (digit[k] < 0) continue;
    const int at = run + k * 32;
    const int own_digit = digit[k] & 0xFFFF;
    const int rank = digit[k] >> 16;
    in_order[rank] = static_cast<uint32_t>(own_digit) << 16 | at;
    if (place) place[tile.position(at)] = rank + to_row[own_digit];
  }
  __syncthreads();
  int32_t* order = pass.order + first;
  uint16_t* keys = pass.keys ? pass.keys + first : nullptr;
  for (int at = threadIdx.x; at < tile.n; at += kSortThreads) {
    const uint32_t key = in_order[at];
    const int from = static_cast<int>(key & 0xFFFF);
    const int to = at + to_row[key >> 16];
    order[to] = tile.position(from);
    if (keys) keys[to] = static_cast<uint16_t>(tile.key(from));
  }
}

}  // namespace reformer::kernels::cuda
