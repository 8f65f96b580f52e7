// A softmax over rows that groups of 16 lanes read, each lane eight columns.
#pragma once

#include "reformer/kernels/cuda/eight.cuh"
#include "reformer/kernels/cuda/next_positions.cuh"

namespace reformer::kernels::cuda {

inline constexpr int kThreads = 256;
inline constexpr int kGroupLanes = 16;
inline constexpr int kGroups = kThreads / kGroupLanes;
inline constexpr int kMaxColumns = kGroupLanes * 8;

// The same in all lanes of a group.
template <class T>
__device__ __forceinline__ float group_dot(const float (&q)[8],
                                           const Eight<T>& key) {
  float k[8];
  unpack(key, k);
  float sum = 0;
#pragma unroll
  for (int e = 0; e < 8; ++e) sum += q[e] * k[e];
#pragma unroll
  for (int step = kGroupLanes / 2; step > 0; step /= 2) {
    sum += __shfl_xor_sync(0xffffffff, sum, step);
  }
  return sum;
}

// Of the rows that this group has met. -inf is a row that does not count.
struct RunningSoftmax {
  float max = -INFINITY;
  float sum = 0;
  float values[8] = {};

  template <class T, int kRows>
  __device__ __forceinline__ void add(const float (&scores)[kRows],
                                      const Eight<T> (&rows)[kRows]) {
    float largest = max;
#pragma unroll
    for (int i = 0; i < kRows; ++i) largest = fmaxf(largest, scores[i]);
    if (largest == -INFINITY) return;
    const float kept = expf(max - largest);
    sum *= kept;
#pragma unroll
    for (float& value : values) value *= kept;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float weight = expf(scores[i] - largest);
      float row[8];
      unpack(rows[i], row);
      sum += weight;
#pragma unroll
      for (int e = 0; e < 8; ++e) values[e] += weight * row[e];
    }
    max = largest;
  }
};

// Sums of several softmaxes, relative to the largest maximum of all.
struct MergedColumn {
  float max = -INFINITY;
  float sum = 0;
  float value = 0;

  __device__ void add(float other_max, float other_sum, float other_value) {
    if (other_max == -INFINITY) return;
    const float largest = fmaxf(max, other_max);
    const float kept = max == -INFINITY ? 0 : expf(max - largest);
    const float gained = expf(other_max - largest);
    sum = sum * kept + other_sum * gained;
    value = value * kept + other_value * gained;
    max = largest;
  }
};

// All groups' softmaxes as one, by the whole block: [d_head] values, not yet
// divided, then the maximum and the sum.
__device__ __forceinline__ void write_block_sum(const RunningSoftmax& own,
                                                int d_head, float* to) {
  __shared__ float values[kGroups][kMaxColumns];
  __shared__ float2 statistics[kGroups];
  const int group = threadIdx.x / kGroupLanes;
  const int lane = threadIdx.x % kGroupLanes;
#pragma unroll
  for (int e = 0; e < 8; ++e) values[group][lane * 8 + e] = own.values[e];
  if (lane == 0) statistics[group] = {own.max, own.sum};
  __syncthreads();
  if (threadIdx.x >= d_head) return;
  MergedColumn merged;
  for (int g = 0; g < kGroups; ++g) {
    merged.add(statistics[g].x, statistics[g].y, values[g][threadIdx.x]);
  }
  to[threadIdx.x] = merged.value;
  if (threadIdx.x == 0) {
    to[d_head] = merged.max;
    to[d_head + 1] = merged.sum;
  }
}

// A column of all parts of a (row, head), in their order; `sums` has one every
// `stride` elements, as write_block_sum leaves them. Past the first-level
// cache, which knows nothing of other blocks' writes.
__device__ __forceinline__ MergedColumn sum_of_parts(const float* sums,
                                                     int64_t stride,
                                                     const NextParts& parts,
                                                     const NextHead& own,
                                                     int column) {
  MergedColumn merged;
  const int used = parts.range_used(own);
  for (int part = 0; part < parts.launched(); ++part) {
    if (part >= used && part < parts.range_launched()) continue;
    const float* at = sums + part * stride;
    merged.add(__ldcg(at + stride - 2), __ldcg(at + stride - 1),
               __ldcg(at + column));
  }
  return merged;
}

}  // namespace reformer::kernels::cuda
