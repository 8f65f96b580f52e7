#include "reformer/kernels/counter_dropout.h"

#include <cuda_bf16.h>

#include "reformer/kernels/cuda/launch.h"
#include "reformer/kernels/cuda/live_step.cuh"

namespace reformer::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerCall = 8;  // elements that one Philox call decides on

__device__ float scaled(float x, float scale) { return x * scale; }
__device__ __nv_bfloat16 scaled(__nv_bfloat16 x, float scale) {
  return __float2bfloat16_rn(__bfloat162float(x) * scale);
}

template <class T>
struct alignas(16) Eight {
  T x[kPerCall];
};

// A thread draws once and reads and writes the eight elements that the draw
// decides on, in 16-byte accesses where `whole` says that they are aligned.
template <class T>
__global__ void counter_dropout_kernel(const T* x, T* y, DropoutKey key,
                                       DropoutRule rule, int64_t calls,
                                       int64_t calls_per_row, int64_t length,
                                       int64_t width, int64_t first_position,
                                       bool whole) {
  const int64_t call = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (call >= calls) return;
  const int64_t row = call / calls_per_row;
  const auto column = static_cast<uint32_t>(call % calls_per_row);
  const auto position = static_cast<uint32_t>(first_position + row % length);
  const auto bits =
      philox(dropout_philox_key(live(key)),
             {column, position, dropout_example(key, row / length), 0});
  const int64_t first = row * width + int64_t{column} * kPerCall;
  const int64_t n = width - int64_t{column} * kPerCall;
  const float scale = static_cast<float>(rule.scale);
  Eight<T> some;
  if (whole) {
    some = *reinterpret_cast<const Eight<T>*>(x + first);
  } else {
#pragma unroll
    for (int e = 0; e < kPerCall; ++e) {
      if (e < n) some.x[e] = x[first + e];
    }
  }
#pragma unroll
  for (int e = 0; e < kPerCall; ++e) {
    const uint32_t drawn = (bits[e / 2] >> (e % 2 * 16)) & 0xFFFF;
    if (drawn < rule.threshold) {
      some.x[e] = T(0.0f);
    } else {
      some.x[e] = scaled(some.x[e], scale);
    }
  }
  if (whole) {
    *reinterpret_cast<Eight<T>*>(y + first) = some;
  } else {
#pragma unroll
    for (int e = 0; e < kPerCall; ++e) {
      if (e < n) y[first + e] = some.x[e];
    }
  }
}

template <class T>
void drop(const CounterDropoutArgs<T>& args, void* stream) {
  const auto aligned = [](const void* p) {
    return reinterpret_cast<uintptr_t>(p) % alignof(Eight<T>) == 0;
  };
  const int64_t calls_per_row = ceil_div(args.width, kPerCall);
  const int64_t calls = args.batch * args.length * calls_per_row;
  if (calls == 0) return;
  counter_dropout_kernel<<<grid_for(calls, kThreads, "counter_dropout"),
                           kThreads, 0, stream_of(stream)>>>(
      args.x, args.y, args.key, dropout_rule(args.probability), calls,
      calls_per_row, args.length, args.width, args.first_position,
      args.width % kPerCall == 0 && aligned(args.x) && aligned(args.y));
  check_launch("counter_dropout");
}

}  // namespace

void counter_dropout(const CounterDropoutArgs<float>& args, void* stream) {
  drop(args, stream);
}

void counter_dropout(const CounterDropoutArgs<Bf16>& args, void* stream) {
  drop(args, stream);
}

}  // namespace reformer::kernels::cuda
