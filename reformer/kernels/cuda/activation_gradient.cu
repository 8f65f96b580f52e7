#include "reformer/kernels/activation_gradient.h"

#include <cuda_bf16.h>

#include "reformer/kernels/cuda/eight.cuh"
#include "reformer/kernels/cuda/launch.h"

// A lane owns eight columns, a warp 256, and the warps of a block take rows of
// the block's part in turn. Everything is read once and d written once; the
// sums of unrounded gradients stay in registers, are added over the warps of a
// block, then over the parts.
namespace reformer::kernels::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kLaneColumns = 8;
constexpr int kColumns = 32 * kLaneColumns;  // of a block

template <Activation activation>
__device__ float slope(float x) {
  // x is max(0, x) of kRelu, and its square of kReluSquared.
  if constexpr (activation == Activation::kNone) {
    return 1;
  } else if constexpr (activation == Activation::kRelu) {
    return x > 0 ? 1.0f : 0.0f;
  } else if constexpr (activation == Activation::kReluSquared) {
    return 2 * sqrtf(x);
  } else if constexpr (activation == Activation::kGeluErf) {
    constexpr float kRootOfHalf = 0.7071067811865476f;
    constexpr float kRootOfHalfOverPi = 0.3989422804014327f;
    return 0.5f * (1 + erff(kRootOfHalf * x)) +
           x * kRootOfHalfOverPi * __expf(-0.5f * x * x);
  } else {
    // With s = sigmoid(2 u) and u = sqrt(2 / pi) (x + 0.044715 x^3), GELU is
    // x s.
    static_assert(activation == Activation::kGelu);
    constexpr float kRoot = 0.79788456080286536f;
    constexpr float kCube = 0.044715f;
    const float square = x * x;
    const float u = kRoot * x * (1 + kCube * square);
    const float s = __fdividef(1.0f, 1.0f + __expf(-2 * u));
    return s + 2 * x * s * (1 - s) * kRoot * (1 + 3 * kCube * square);
  }
}

template <Activation activation>
__global__ void __launch_bounds__(kThreads)
    activation_gradient_kernel(const __nv_bfloat16* x, __nv_bfloat16* d,
                               float* partial, int64_t rows, int64_t width) {
  __shared__ float shared[kWarps][kColumns];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int64_t first = blockIdx.x * int64_t{kColumns};
  const int64_t column = first + lane * kLaneColumns;
  float sums[kLaneColumns] = {};
  if (column < width) {
    const int64_t stride = kActivationPartials * kWarps;
    for (int64_t row = blockIdx.y * int64_t{kWarps} + warp; row < rows;
         row += stride) {
      const int64_t at = row * width + column;
      float seen[kLaneColumns];
      float g[kLaneColumns];
      unpack(load_eight(x + at), seen);
      unpack(load_eight(d + at), g);
#pragma unroll
      for (int i = 0; i < kLaneColumns; ++i) {
        g[i] *= slope<activation>(seen[i]);
        sums[i] += g[i];
      }
      store_eight(d + at, g);
    }
  }
#pragma unroll
  for (int i = 0; i < kLaneColumns; ++i) {
    shared[warp][lane * kLaneColumns + i] = sums[i];
  }
  __syncthreads();
  const int64_t own = first + threadIdx.x;
  if (own >= width) return;
  float total = 0;
  for (int w = 0; w < kWarps; ++w) total += shared[w][threadIdx.x];
  partial[blockIdx.y * width + own] = total;
}
static_assert(kThreads == kColumns);

__global__ void add_partials_kernel(const float* partial, float* sums,
                                    int64_t width) {
  const int64_t column = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (column >= width) return;
  float total = 0;
#pragma unroll 8
  for (int64_t part = 0; part < kActivationPartials; ++part) {
    total += partial[part * width + column];
  }
  sums[column] += total;
}

template <Activation activation>
void launch(const ActivationGradientArgs& args, dim3 grid, void* stream) {
  activation_gradient_kernel<activation>
      <<<grid, kThreads, 0, stream_of(stream)>>>(args.x, args.d, args.partial,
                                                 args.rows, args.width);
}

void launch_chosen(const ActivationGradientArgs& args, dim3 grid,
                   void* stream) {
  switch (args.activation) {
    case Activation::kGelu:
      return launch<Activation::kGelu>(args, grid, stream);
    case Activation::kRelu:
      return launch<Activation::kRelu>(args, grid, stream);
    case Activation::kGeluErf:
      return launch<Activation::kGeluErf>(args, grid, stream);
    case Activation::kReluSquared:
      return launch<Activation::kReluSquared>(args, grid, stream);
    case Activation::kNone:
      return launch<Activation::kNone>(args, grid, stream);
  }
}

}  // namespace

void activation_gradient(const ActivationGradientArgs& args, void* stream) {
  if (args.rows == 0) return;
  dim3 grid = grid_for(args.width, kColumns, "activation_gradient");
  grid.y = kActivationPartials;
  launch_chosen(args, grid, stream);
  check_launch("activation_gradient");
  add_partials_kernel<<<grid_for(args.width, kThreads, "activation_gradient"),
                        kThreads, 0, stream_of(stream)>>>(
      args.partial, args.sums, args.width);
  check_launch("activation_gradient: sums");
}

}  // namespace reformer::kernels::cuda
