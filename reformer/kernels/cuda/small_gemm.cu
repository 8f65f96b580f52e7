#include "reformer/kernels/small_gemm.h"

#include "reformer/kernels/cuda/eight.cuh"
#include "reformer/kernels/cuda/launch.h"
#include "reformer/kernels/cuda/reduce.cuh"
#include "reformer/kernels/layer_norm.h"

// A warp owns kOutputs rows of the matrices, reads them once and meets all rows
// of x, which the block holds in shared memory: normed, where that is asked
// for, by every block anew, while its first matrix rows are on their way.
namespace reformer::kernels::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kStep = 32 * 8;  // columns that a warp loads at once

// One output of the matmuls, counted over all of them.
template <class T>
struct Output {
  const T* weight = nullptr;  // [width]; null: there is none
  const float* bias = nullptr;
  void* y = nullptr;
  int64_t index = 0;
  int64_t outputs = 0;  // of its matmul

  Output() = default;
  __device__ Output(const SmallGemmArgs<T>& args, int64_t at) {
    for (int64_t i = 0; i < args.n_matrices; ++i) {
      const auto& matrix = args.matrices[i];
      if (at < matrix.outputs) {
        weight = matrix.weight + at * args.width;
        bias = matrix.bias;
        y = matrix.y;
        index = at;
        outputs = matrix.outputs;
        return;
      }
      at -= matrix.outputs;
    }
  }
};

// The sum over the kGroup warps that share a row; `sums` is [kWarps].
template <int kGroup>
__device__ float group_sum(float x, float* sums) {
  const int warp = threadIdx.x / 32;
  const float own = warp_sum(x);
  __syncthreads();  // the last sum has been read
  if (threadIdx.x % 32 == 0) sums[warp] = own;
  __syncthreads();
  float total = 0;
#pragma unroll
  for (int i = 0; i < kGroup; ++i) total += sums[warp / kGroup * kGroup + i];
  return total;
}

// Layer norm of the rows, rounded to T as the matmuls take them.
template <class T, int kRows>
__device__ void norm_rows(const SmallGemmArgs<T>& args, T* rows) {
  __shared__ float sums[kWarps];
  constexpr int kGroup = kWarps / kRows;
  constexpr int kGroupThreads = 32 * kGroup;
  const int row = threadIdx.x / kGroupThreads;
  const bool real = row < args.rows;
  const int64_t width = real ? args.width : 0;
  const float* x = static_cast<const float*>(args.x) + row * args.width;
  const auto for_each_column = [&](const auto& body) {
    for (int64_t c = threadIdx.x % kGroupThreads; c < width;
         c += kGroupThreads) {
      body(c);
    }
  };
  float sum = 0;
  for_each_column([&](int64_t c) { sum += x[c]; });
  const float mean = group_sum<kGroup>(sum, sums) / float(args.width);
  float squares = 0;
  for_each_column([&](int64_t c) { squares += (x[c] - mean) * (x[c] - mean); });
  const float scale = rsqrtf(
      group_sum<kGroup>(squares, sums) / float(args.width) + args.norm_epsilon);
  for_each_column([&](int64_t c) {
    store(rows + row * args.width + c,
          (x[c] - mean) * scale * args.norm_weight[c] + args.norm_bias[c]);
  });
}

template <class T>
__device__ void copy_rows(const SmallGemmArgs<T>& args, T* rows) {
  const auto* from = static_cast<const uint4*>(args.x);
  const int64_t count =
      args.rows * args.width * int64_t{sizeof(T)} / int64_t{sizeof(uint4)};
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    reinterpret_cast<uint4*>(rows)[i] = from[i];
  }
}

__device__ float activated(float x, Activation activation) {
  if (activation == Activation::kRelu) return fmaxf(x, 0.0f);
  if (activation == Activation::kReluSquared) return x > 0 ? x * x : 0.0f;
  if (activation == Activation::kNone) return x;
  if (activation == Activation::kGeluErf) {
    constexpr float kRootOfHalf = 0.7071067811865476f;
    return 0.5f * x * (1 + erff(kRootOfHalf * x));
  }
  constexpr float kRootOfTwoOverPi = 0.7978845608028654f;
  return 0.5f * x * (1 + tanhf(kRootOfTwoOverPi * (x + 0.044715f * x * x * x)));
}

template <class T>
__device__ void write(const SmallGemmArgs<T>& args, const Output<T>& output,
                      int64_t row, float sum) {
  const float bias = output.bias ? output.bias[output.index] : 0.0f;
  const float y = activated(sum + bias, args.activation);
  const int64_t at = row * output.outputs + output.index;
  if (args.result == GemmResult::kRounded) {
    store(static_cast<T*>(output.y) + at, y);
  } else {
    float* to = static_cast<float*>(output.y) + at;
    *to = args.result == GemmResult::kAdded ? *to + y : y;
  }
}

template <class T, int kOutputs, int kSteps>
__device__ void load_weights(const Output<T> (&outputs)[kOutputs],
                             int64_t column, int64_t width,
                             Eight<T> (&held)[kOutputs][kSteps]) {
#pragma unroll
  for (int o = 0; o < kOutputs; ++o) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const int64_t at = column + s * kStep;
      held[o][s] = outputs[o].weight != nullptr && at < width
                       ? load_eight(outputs[o].weight + at)
                       : Eight<T>{};
    }
  }
}

template <class T, int kRows, int kOutputs, int kSteps>
__device__ void multiply(const Eight<T> (&held)[kOutputs][kSteps],
                         const T* rows, int64_t column, int64_t width,
                         float (&sums)[kOutputs][kRows]) {
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int64_t at = column + s * kStep;
    if (at >= width) continue;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float x[8];
      unpack(load_eight(rows + r * width + at), x);
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) {
        float w[8];
        unpack(held[o][s], w);
#pragma unroll
        for (int e = 0; e < 8; ++e) sums[o][r] += w[e] * x[e];
      }
    }
  }
}

template <class T, int kRows, int kOutputs>
__global__ void __launch_bounds__(kThreads)
    small_gemm_kernel(const __grid_constant__ SmallGemmArgs<T> args) {
  constexpr int kSteps = (kOutputs == 1 ? 16 : 8) / int{sizeof(T)};
  extern __shared__ uint4 shared[];
  T* rows = reinterpret_cast<T*>(shared);  // [kRows, width]
  const int lane = threadIdx.x % 32;
  const int64_t first =
      (blockIdx.x * int64_t{kWarps} + threadIdx.x / 32) * kOutputs;
  Output<T> outputs[kOutputs];
#pragma unroll
  for (int o = 0; o < kOutputs; ++o) outputs[o] = Output<T>(args, first + o);
  int64_t column = lane * 8;
  Eight<T> held[kOutputs][kSteps];
  load_weights(outputs, column, args.width, held);
  if (args.norm_weight != nullptr) {
    norm_rows<T, kRows>(args, rows);
  } else {
    copy_rows(args, rows);
  }
  __syncthreads();

  float sums[kOutputs][kRows] = {};
  while (true) {
    multiply(held, rows, column, args.width, sums);
    column += kSteps * kStep;
    if (column - lane * 8 >= args.width) break;
    load_weights(outputs, column, args.width, held);
  }
#pragma unroll
  for (int o = 0; o < kOutputs; ++o) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float sum = warp_sum(sums[o][r]);
      if (lane == 0 && outputs[o].weight != nullptr && r < args.rows) {
        write(args, outputs[o], r, sum);
      }
    }
  }
}

template <class T, int kRows, int kOutputs>
void launch(const SmallGemmArgs<T>& args, int64_t outputs, void* stream) {
  constexpr const char* kName = "small_gemm";
  auto* kernel = small_gemm_kernel<T, kRows, kOutputs>;
  const int64_t bytes = kRows * args.width * int64_t{sizeof(T)};
  allow_shared_memory(kernel, bytes, kName);
  kernel<<<grid_for(outputs, kWarps * kOutputs, kName), kThreads,
           static_cast<size_t>(bytes), stream_of(stream)>>>(args);
  check_launch(kName);
}

// One row: as many outputs a warp as leave every multiprocessor a block, since
// each block norms x anew.
template <class T>
void launch_for_one(const SmallGemmArgs<T>& args, int64_t outputs,
                    void* stream) {
  const int64_t enough = multiprocessors() * 9 / 10;
  if (outputs >= 4 * kWarps * enough) {
    return launch<T, 1, 4>(args, outputs, stream);
  }
  if (outputs >= 2 * kWarps * enough) {
    return launch<T, 1, 2>(args, outputs, stream);
  }
  launch<T, 1, 1>(args, outputs, stream);
}

// The same of rows [first, first + rows) alone.
template <class T>
SmallGemmArgs<T> some_rows(SmallGemmArgs<T> args, int64_t first, int64_t rows) {
  constexpr int64_t kOwn = sizeof(T);
  constexpr int64_t kWide = sizeof(float);
  const int64_t x_bytes = args.norm_weight != nullptr ? kWide : kOwn;
  const int64_t y_bytes = args.result == GemmResult::kRounded ? kOwn : kWide;
  args.x = static_cast<const char*>(args.x) + first * args.width * x_bytes;
  for (int64_t i = 0; i < args.n_matrices; ++i) {
    auto& matrix = args.matrices[i];
    matrix.y = static_cast<char*>(matrix.y) + first * matrix.outputs * y_bytes;
  }
  args.rows = rows;
  return args;
}

// More than four rows, which together are too much for the shared memory of
// some GPUs where they are wide: there the matrices are read twice.
template <class T>
void launch_for_many(const SmallGemmArgs<T>& args, int64_t outputs,
                     void* stream) {
  static_assert(4 * kMaxRowBytes <= kLeastSharedMemory);
  if (fits_shared_memory(8 * args.width * int64_t{sizeof(T)})) {
    return launch<T, 8, 1>(args, outputs, stream);
  }
  launch<T, 4, 1>(some_rows(args, 0, 4), outputs, stream);
  launch<T, 4, 1>(some_rows(args, 4, args.rows - 4), outputs, stream);
}

template <class T>
void run(const SmallGemmArgs<T>& args, void* stream) {
  int64_t outputs = 0;
  for (int64_t i = 0; i < args.n_matrices; ++i) {
    outputs += args.matrices[i].outputs;
  }
  if (args.rows == 1) return launch_for_one(args, outputs, stream);
  if (args.rows == 2) return launch<T, 2, 1>(args, outputs, stream);
  if (args.rows <= 4) return launch<T, 4, 1>(args, outputs, stream);
  launch_for_many(args, outputs, stream);
}

}  // namespace

void small_gemm(const SmallGemmArgs<float>& args, void* stream) {
  run(args, stream);
}
void small_gemm(const SmallGemmArgs<Bf16>& args, void* stream) {
  run(args, stream);
}

}  // namespace reformer::kernels::cuda
