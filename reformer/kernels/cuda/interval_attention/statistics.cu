// One pass over rows of bf16: a group of lanes takes a row, 16 bytes a lane.
#include "reformer/kernels/cuda/interval_attention/statistics.h"

#include "reformer/kernels/cuda/interval_attention/launch.cuh"
#include "reformer/kernels/cuda/interval_attention/rows.cuh"

namespace reformer::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsPerGroup = 4;  // so many loads in flight

struct NormsOf {
  Rows<const bf16> q;
  float* scales;
  float factor;
  int heads;
  int length;
  int d;
};

struct StatisticsOf {
  Rows<const bf16> d_output;
  Rows<bf16> output;
  const float* softmax;
  float2* statistics;
  int heads;
  int length;
  int d;
};

template <class Sum>
__device__ Sum dot_of_chunks(const uint4& x, const uint4& y) {
  const auto* a = reinterpret_cast<const __nv_bfloat162*>(&x);
  const auto* b = reinterpret_cast<const __nv_bfloat162*>(&y);
  Sum sum = 0;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const float2 f = __bfloat1622float2(a[c]);
    const float2 g = __bfloat1622float2(b[c]);
    sum += Sum(f.x) * Sum(g.x) + Sum(f.y) * Sum(g.y);
  }
  return sum;
}

template <int kLanes, class Sum>
__device__ Sum group_sum(Sum x) {
#pragma unroll
  for (int bit = 1; bit < kLanes; bit *= 2) {
    x += __shfl_xor_sync(kAllLanes, x, bit);
  }
  return x;
}

template <int kLanes>
__device__ int first_row() {
  return static_cast<int>(blockIdx.x * (kThreads / kLanes) +
                          threadIdx.x / kLanes) *
         kRowsPerGroup;
}

__device__ uint4 chunk_of(const bf16* row, int chunk, bool exists) {
  if (!exists) return {0, 0, 0, 0};
  return *reinterpret_cast<const uint4*>(row + chunk * kChunk);
}

// Reads q once; grid.y counts (batch, head).
template <int kLanes>
__global__ void __launch_bounds__(kThreads)
    norms_kernel(const __grid_constant__ NormsOf p) {
  const int row = first_row<kLanes>();
  const int chunk = threadIdx.x % kLanes;
  const bf16* q = head_of(p.q, blockIdx.y / p.heads, blockIdx.y % p.heads);
  uint4 x[kRowsPerGroup];
#pragma unroll
  for (int r = 0; r < kRowsPerGroup; ++r) {
    x[r] = chunk_of(q + (row + r) * p.q.row_stride, chunk,
                    row + r < p.length && chunk * kChunk < p.d);
  }
#pragma unroll
  for (int r = 0; r < kRowsPerGroup; ++r) {
    const float square = group_sum<kLanes>(dot_of_chunks<float>(x[r], x[r]));
    float inverse = square > 0 ? p.factor / sqrtf(square) : 0;
    if (sqrtf(square) <= static_cast<float>(kSmallestKeyNorm)) inverse = 0;
    if (__any_sync(kAllLanes, !(square < 1e30f))) {
      const double wide = group_sum<kLanes>(dot_of_chunks<double>(x[r], x[r]));
      if (wide >= 1e30) inverse = static_cast<float>(p.factor / sqrt(wide));
    }
    if (chunk != 0 || row + r >= p.length) continue;
    p.scales[int64_t{blockIdx.y} * p.length + row + r] = inverse;
  }
}

// Reads output and d_output once.
template <int kLanes>
__global__ void __launch_bounds__(kThreads)
    statistics_kernel(const __grid_constant__ StatisticsOf p) {
  const int row = first_row<kLanes>();
  const int chunk = threadIdx.x % kLanes;
  const int64_t b = blockIdx.y / p.heads;
  const int64_t h = blockIdx.y % p.heads;
  const bf16* d_output = head_of(p.d_output, b, h);
  const bf16* output = head_of(p.output, b, h);
  uint4 x[kRowsPerGroup];
  uint4 y[kRowsPerGroup];
#pragma unroll
  for (int r = 0; r < kRowsPerGroup; ++r) {
    const bool exists = row + r < p.length && chunk * kChunk < p.d;
    x[r] =
        chunk_of(d_output + (row + r) * p.d_output.row_stride, chunk, exists);
    y[r] = chunk_of(output + (row + r) * p.output.row_stride, chunk, exists);
  }
#pragma unroll
  for (int r = 0; r < kRowsPerGroup; ++r) {
    const float delta = group_sum<kLanes>(dot_of_chunks<float>(x[r], y[r]));
    if (chunk != 0 || row + r >= p.length) continue;
    const int64_t at = int64_t{blockIdx.y} * p.length + row + r;
    const float ref = p.softmax[2 * at];
    const float sum = p.softmax[2 * at + 1];
    p.statistics[at] = {sum != 0 ? ref * kLog2E + log2f(sum) : kInfinity,
                        delta};
  }
}

// Lanes for a row of up to D elements: a power of two.
template <int D>
constexpr int kLanesFor = D <= 32   ? 4
                          : D <= 64 ? 8
                                    : 16;

template <int kLanes>
dim3 row_grid(const IntervalAttentionArgs<bf16>& args) {
  constexpr int kRows = kThreads / kLanes * kRowsPerGroup;
  return {static_cast<unsigned>((args.length + kRows - 1) / kRows),
          static_cast<unsigned>(args.batch * args.heads)};
}

}  // namespace

void inverse_norms(const IntervalAttentionArgs<bf16>& args, float factor,
                   float* scales, cudaStream_t stream) {
  const NormsOf p = {args.q,
                     scales,
                     factor,
                     static_cast<int>(args.heads),
                     static_cast<int>(args.length),
                     static_cast<int>(args.d_head)};
  with_padded_d(args.d_head, [&](auto d) {
    constexpr int kLanes = kLanesFor<d>;
    launch(norms_kernel<kLanes>, row_grid<kLanes>(args), kThreads, stream, p,
           "interval_attention: norms");
  });
}

void row_statistics(const IntervalAttentionGradArgs<bf16>& args,
                    float2* statistics, cudaStream_t stream) {
  const StatisticsOf p = {args.d_output,
                          args.forward.output,
                          args.forward.softmax,
                          statistics,
                          static_cast<int>(args.forward.heads),
                          static_cast<int>(args.forward.length),
                          static_cast<int>(args.forward.d_head)};
  with_padded_d(args.forward.d_head, [&](auto d) {
    constexpr int kLanes = kLanesFor<d>;
    launch(statistics_kernel<kLanes>, row_grid<kLanes>(args.forward), kThreads,
           stream, p, "interval_attention_grad: statistics");
  });
}

}  // namespace reformer::kernels::cuda
