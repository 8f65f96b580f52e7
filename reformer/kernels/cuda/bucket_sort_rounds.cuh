// What follows the counting sort: places and intervals of all rounds side by
// side, and where buckets begin.
#pragma once

#include "reformer/kernels/cuda/bucket_sort_pass.cuh"
#include "reformer/kernels/cuda/lsh_window.cuh"

namespace reformer::kernels::cuda {

// The part of a head that a block of write_rounds has.
struct RoundsBlock {
  unsigned count;      // of blocks that a head has
  int log2_positions;  // of a block
  // 2^20 / rounds, rounded up: at * reciprocal >> 20 is at / rounds, exactly
  // for at below 2^20 / rounds, and a block has at most 2^12 elements.
  int reciprocal;
};

// A block turns the places of some positions of one head, [rounds, positions],
// into [positions, rounds], and adds their intervals where these are wanted.
// Through shared memory: reads and writes are both of neighbours.
static __global__ __launch_bounds__(kSortThreads, 2) void write_rounds(
    const __grid_constant__ BucketSortArgs args, const int32_t* places,
    int32_t* interval, bool causal, const __grid_constant__ WindowRules rules,
    RoundsBlock block) {
  extern __shared__ int shared[];
  const int positions = 1 << block.log2_positions;
  const int rounds = static_cast<int>(args.rounds);
  // Rows of odd length: neighbours lie in different banks.
  const int stride = rounds | 1;
  int2* out_interval = reinterpret_cast<int2*>(shared);
  int* out_place = shared + (interval ? 2 * positions * stride : 0);
  const unsigned head = blockIdx.x / block.count;  // of all heads
  const int64_t first = int64_t{blockIdx.x % block.count} * positions;
  const int n = static_cast<int>(min(int64_t{positions}, args.length - first));

  // A thread stays with its position, round after round.
  const int in_block = threadIdx.x & (positions - 1);
  const int step = kSortThreads >> block.log2_positions;
  if (in_block < n) {
    const Keys keys(args, head, /*round=*/0);
    const auto natural = static_cast<int>(args.natural_rounds);
    const int n_starts = keys.n_buckets + 1;
    const int64_t at_position = first + in_block;
    const bool real = !keys.mask || keys.mask[at_position];
    const uint16_t* buckets = args.buckets +
                              int64_t{head} * (rounds - natural) * args.length +
                              at_position;
    places += int64_t{head} * rounds * args.length + at_position;
    const int32_t* starts = args.starts + int64_t{head} * rounds * n_starts;
#pragma unroll 4
    for (int round = threadIdx.x >> block.log2_positions; round < rounds;
         round += step) {
      const int s = places[round * args.length];
      const int at = in_block * stride + round;
      out_place[at] = s;
      if (!interval) continue;
      int bucket = 0;
      if (round >= natural) {
        bucket = min(int{buckets[(round - natural) * args.length]},
                     keys.n_buckets - 1);
      }
      const int32_t* own = starts + int64_t{round} * n_starts + bucket;
      int2 found{s, s};
      if (real) {
        found = interval_at(s, own[0], own[1], rules.length[round],
                            rules.chunk[round], causal);
      }
      out_interval[at] = found;
    }
  }
  __syncthreads();
  const int64_t begin = (int64_t{head} * args.length + first) * rounds;
  for (int at = threadIdx.x; at < n * rounds; at += kSortThreads) {
    const int i = at * block.reciprocal >> 20;
    const int from = i * stride + at - i * rounds;
    args.place[begin + at] = out_place[from];
    if (interval) {
      reinterpret_cast<int2*>(interval)[begin + at] = out_interval[from];
    }
  }
}

// Where each bucket begins, from the sorted order: a thread compares two
// neighbours, and the one at the border fills what lies between their buckets.
// Long gaps are filled by the whole block.
static __global__ __launch_bounds__(kSortThreads) void find_starts(
    const __grid_constant__ BucketSortArgs args, const uint16_t* sorted,
    unsigned blocks) {
  __shared__ int gaps;
  __shared__ int gap[kSortThreads][3];  // place, first bucket, last bucket
  constexpr int kLong = 64;
  if (threadIdx.x == 0) gaps = 0;
  __syncthreads();
  const unsigned row = blockIdx.x / blocks;
  const int64_t s = int64_t{blockIdx.x % blocks} * kSortThreads + threadIdx.x;
  int32_t* starts = args.starts + int64_t{row} * (args.n_buckets + 1);
  const int64_t row_begin = int64_t{row} * args.length;
  if (s <= args.length) {
    const auto key_at = [&](int64_t at) {
      if (sorted) return int{sorted[row_begin + at]};
      return Keys(args, row).of(args.order[row_begin + at]);
    };
    const int first = s == 0 ? 0 : key_at(s - 1) + 1;
    const int last =
        s == args.length ? static_cast<int>(args.n_buckets) : key_at(s);
    if (last - first < kLong) {
      for (int b = first; b <= last; ++b) starts[b] = static_cast<int>(s);
    } else {
      int* own = gap[atomicAdd(&gaps, 1)];
      own[0] = static_cast<int>(s);
      own[1] = first;
      own[2] = last;
    }
  }
  __syncthreads();
  for (int g = 0; g < gaps; ++g) {
    for (int b = gap[g][1] + threadIdx.x; b <= gap[g][2]; b += kSortThreads) {
      starts[b] = gap[g][0];
    }
  }
}

}  // namespace reformer::kernels::cuda
