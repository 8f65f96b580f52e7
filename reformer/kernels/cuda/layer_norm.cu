#include "reformer/kernels/layer_norm.h"

#include <cuda_bf16.h>

#include "reformer/kernels/cuda/launch.h"
#include "reformer/kernels/cuda/reduce.cuh"

// A warp takes a row at a time; a lane owns columns 4 lane + 128 k .. + 3. A
// row is read from memory once and found in the first-level cache after that.
// Backward adds the parameters' gradients up in registers, a column's in one
// lane of each warp, then over the warps of a block, then over the blocks.
namespace reformer::kernels::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kLaneColumns = 4;
constexpr int kStep = 32 * kLaneColumns;

__device__ float4 load4(const float* x) {
  return *reinterpret_cast<const float4*>(x);
}
__device__ float4 load4(const __nv_bfloat16* x) {
  const auto pair = *reinterpret_cast<const uint2*>(x);
  const auto low = reinterpret_cast<const __nv_bfloat162&>(pair.x);
  const auto high = reinterpret_cast<const __nv_bfloat162&>(pair.y);
  const float2 a = __bfloat1622float2(low);
  const float2 b = __bfloat1622float2(high);
  return {a.x, a.y, b.x, b.y};
}
__device__ void store4(float* y, float4 v) {
  *reinterpret_cast<float4*>(y) = v;
}
__device__ void store4(__nv_bfloat16* y, float4 v) {
  const __nv_bfloat162 low = __floats2bfloat162_rn(v.x, v.y);
  const __nv_bfloat162 high = __floats2bfloat162_rn(v.z, v.w);
  *reinterpret_cast<uint2*>(y) = {reinterpret_cast<const unsigned&>(low),
                                  reinterpret_cast<const unsigned&>(high)};
}

__device__ float sum4(float4 v) { return (v.x + v.y) + (v.z + v.w); }

// kSteps * kStep >= width.
template <class T, int kSteps>
__global__ void __launch_bounds__(kThreads)
    layer_norm_kernel(LayerNormArgs<T> args) {
  const int lane = threadIdx.x % 32;
  const int64_t row = blockIdx.x * int64_t{kWarps} + threadIdx.x / 32;
  if (row >= args.rows) return;
  const float* x = args.x + row * args.width;
  float4 held[kSteps];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    const int64_t column = k * kStep + lane * kLaneColumns;
    held[k] = column < args.width ? load4(x + column) : float4{0, 0, 0, 0};
    sum += sum4(held[k]);
  }
  const float mean = warp_sum(sum) / float(args.width);
  float squares = 0;
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    const int64_t column = k * kStep + lane * kLaneColumns;
    if (column >= args.width) continue;
    const float4 v = {held[k].x - mean, held[k].y - mean, held[k].z - mean,
                      held[k].w - mean};
    squares += sum4({v.x * v.x, v.y * v.y, v.z * v.z, v.w * v.w});
  }
  const float scale =
      rsqrtf(warp_sum(squares) / float(args.width) + args.epsilon);
  T* y = args.y + row * args.width;
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    const int64_t column = k * kStep + lane * kLaneColumns;
    if (column >= args.width) continue;
    const float4 w = load4(args.weight + column);
    const float4 b = load4(args.bias + column);
    store4(y + column, {(held[k].x - mean) * scale * w.x + b.x,
                        (held[k].y - mean) * scale * w.y + b.y,
                        (held[k].z - mean) * scale * w.z + b.z,
                        (held[k].w - mean) * scale * w.w + b.w});
  }
  if (lane == 0) {
    args.statistics[2 * row] = mean;
    args.statistics[2 * row + 1] = scale;
  }
}

__device__ void add4(float4& to, float4 v) {
  to.x += v.x;
  to.y += v.y;
  to.z += v.z;
  to.w += v.w;
}

__device__ float4 normed(float4 x, float mean, float scale) {
  return {(x.x - mean) * scale, (x.y - mean) * scale, (x.z - mean) * scale,
          (x.w - mean) * scale};
}

__device__ float4 times(float4 a, float4 b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};
}

// d_x = scale (g - mean(g) - n mean(g n)), where g = d_y weight and n is the
// normed row. What it is added to is asked for before the sums over the row are
// known, all of it at once.
template <class T, int kSteps, bool kAdd>
__global__ void __launch_bounds__(kThreads)
    layer_norm_grad_kernel(LayerNormGradArgs<T> args) {
  __shared__ float4 shared[kWarps][32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  float4 d_weight[kSteps] = {};
  float4 d_bias[kSteps] = {};
  const int64_t stride = kLayerNormPartials * kWarps;
  for (int64_t row = blockIdx.x * int64_t{kWarps} + warp; row < args.rows;
       row += stride) {
    const float* x = args.x + row * args.width;
    const T* d_y = args.d_y + row * args.width;
    const float mean = args.statistics[2 * row];
    const float scale = args.statistics[2 * row + 1];
    float sum_g = 0;
    float sum_gn = 0;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const int64_t column = k * kStep + lane * kLaneColumns;
      if (column >= args.width) continue;
      const float4 d = load4(d_y + column);
      const float4 n = normed(load4(x + column), mean, scale);
      const float4 g = times(d, load4(args.weight + column));
      add4(d_bias[k], d);
      add4(d_weight[k], times(d, n));
      sum_g += sum4(g);
      sum_gn += sum4(times(g, n));
    }
    float* d_x = args.d_x + row * args.width;
    float4 before[kSteps] = {};
    if constexpr (kAdd) {
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        const int64_t column = k * kStep + lane * kLaneColumns;
        if (column < args.width) before[k] = load4(d_x + column);
      }
    }
    const float mean_g = warp_sum(sum_g) / float(args.width);
    const float mean_gn = warp_sum(sum_gn) / float(args.width);
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const int64_t column = k * kStep + lane * kLaneColumns;
      if (column >= args.width) continue;
      const float4 n = normed(load4(x + column), mean, scale);
      const float4 g = times(load4(d_y + column), load4(args.weight + column));
      float4 d = {scale * (g.x - mean_g - n.x * mean_gn),
                  scale * (g.y - mean_g - n.y * mean_gn),
                  scale * (g.z - mean_g - n.z * mean_gn),
                  scale * (g.w - mean_g - n.w * mean_gn)};
      if constexpr (kAdd) add4(d, before[k]);
      store4(d_x + column, d);
    }
  }
  float* partial = args.partial + int64_t{blockIdx.x} * 2 * args.width;
#pragma unroll
  for (int k = 0; k < 2 * kSteps; ++k) {
    shared[warp][lane] = k < kSteps ? d_weight[k] : d_bias[k - kSteps];
    __syncthreads();
    const int64_t column = k % kSteps * kStep + lane * kLaneColumns;
    if (warp == 0 && column < args.width) {
      float4 total = {0, 0, 0, 0};
      for (int w = 0; w < kWarps; ++w) add4(total, shared[w][lane]);
      store4(partial + (k < kSteps ? 0 : args.width) + column, total);
    }
    __syncthreads();
  }
}

// A thread for each column of both; sums the blocks' parts in a fixed order,
// eight sums side by side: one long one would round more often.
__global__ void sum_partials_kernel(const float* partial, float* d_weight,
                                    float* d_bias, int64_t width, bool add) {
  const int64_t at = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (at >= 2 * width) return;
  constexpr int kSums = 8;
  static_assert(kLayerNormPartials % kSums == 0);
  float sums[kSums] = {};
  for (int64_t block = 0; block < kLayerNormPartials; block += kSums) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      sums[i] += partial[(block + i) * 2 * width + at];
    }
  }
#pragma unroll
  for (int step = kSums / 2; step > 0; step /= 2) {
#pragma unroll
    for (int i = 0; i < step; ++i) sums[i] += sums[i + step];
  }
  float& sum = at < width ? d_weight[at] : d_bias[at - width];
  sum = add ? sum + sums[0] : sums[0];
}

// Calls body with the least of 1, 2, 4, 8, 16 steps that cover the width.
template <class Body>
void with_steps(int64_t width, const Body& body) {
  const auto call = [&]<int kSteps>() { body.template operator()<kSteps>(); };
  if (width <= kStep) return call.template operator()<1>();
  if (width <= 2 * kStep) return call.template operator()<2>();
  if (width <= 4 * kStep) return call.template operator()<4>();
  if (width <= 8 * kStep) return call.template operator()<8>();
  call.template operator()<16>();
}

template <class T>
void run(const LayerNormArgs<T>& args, void* stream) {
  if (args.rows == 0) return;
  with_steps(args.width, [&]<int kSteps>() {
    layer_norm_kernel<T, kSteps><<<grid_for(args.rows, kWarps, "layer_norm"),
                                   kThreads, 0, stream_of(stream)>>>(args);
  });
  check_launch("layer_norm");
}

template <class T>
void run_grad(const LayerNormGradArgs<T>& args, void* stream) {
  with_steps(args.width, [&]<int kSteps>() {
    const auto kernel = args.add ? layer_norm_grad_kernel<T, kSteps, true>
                                 : layer_norm_grad_kernel<T, kSteps, false>;
    kernel<<<kLayerNormPartials, kThreads, 0, stream_of(stream)>>>(args);
  });
  check_launch("layer_norm_grad");
  sum_partials_kernel<<<grid_for(2 * args.width, kThreads, "layer_norm_grad"),
                        kThreads, 0, stream_of(stream)>>>(
      args.partial, args.d_weight, args.d_bias, args.width, args.add);
  check_launch("layer_norm_grad: sums");
}

}  // namespace

void layer_norm(const LayerNormArgs<float>& args, void* stream) {
  run(args, stream);
}
void layer_norm(const LayerNormArgs<Bf16>& args, void* stream) {
  run(args, stream);
}
void layer_norm_grad(const LayerNormGradArgs<float>& args, void* stream) {
  run_grad(args, stream);
}
void layer_norm_grad(const LayerNormGradArgs<Bf16>& args, void* stream) {
  run_grad(args, stream);
}

}  // namespace reformer::kernels::cuda
