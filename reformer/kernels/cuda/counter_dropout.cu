#include "reformer/kernels/counter_dropout.h"

#include <type_traits>

#include "reformer/kernels/cuda/eight.cuh"
#include "reformer/kernels/cuda/launch.h"
#include "reformer/kernels/cuda/live_step.cuh"

namespace reformer::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerCall = 8;  // elements that one Philox call decides on

// What is dropped is of the shorter type.
template <class X, class Y>
using Shorter = std::conditional_t<(sizeof(X) < sizeof(Y)), X, Y>;

template <class T>
__device__ float rounded(float x);
template <>
__device__ float rounded<float>(float x) {
  return x;
}
template <>
__device__ float rounded<__nv_bfloat16>(float x) {
  return __bfloat162float(__float2bfloat16_rn(x));
}

// The first n of eight, in 16-byte accesses where `whole` says that there are
// eight and that they are aligned.
template <class T>
__device__ void load_first(const T* from, int64_t n, bool whole,
                           float (&x)[kPerCall]) {
  if (whole) {
    unpack(load_eight(from), x);
    return;
  }
#pragma unroll
  for (int e = 0; e < kPerCall; ++e) x[e] = e < n ? to_float(from[e]) : 0;
}

template <class T>
__device__ void store_first(T* to, int64_t n, bool whole,
                            const float (&x)[kPerCall]) {
  if (whole) {
    store_eight(to, x);
    return;
  }
#pragma unroll
  for (int e = 0; e < kPerCall; ++e) {
    if (e < n) store(to + e, x[e]);
  }
}

// A thread draws once and reads and writes the eight elements that the draw
// decides on.
template <class X, class Y>
__global__ void __launch_bounds__(kThreads) counter_dropout_kernel(
    const __grid_constant__ CounterDropoutArgs<X, Y> args, DropoutRule rule,
    int64_t calls, int64_t calls_per_row, bool whole) {
  using Dropped = Shorter<X, Y>;
  const int64_t call = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (call >= calls) return;
  const int64_t row = call / calls_per_row;
  const auto column = static_cast<uint32_t>(call % calls_per_row);
  const auto position =
      static_cast<uint32_t>(args.first_position + row % args.length);
  const auto bits = philox(
      dropout_philox_key(live(args.key)),
      {column, position, dropout_example(args.key, row / args.length), 0});
  const int64_t first = row * args.width + int64_t{column} * kPerCall;
  const int64_t n = args.width - int64_t{column} * kPerCall;
  const float scale = static_cast<float>(rule.scale);
  float x[kPerCall];
  float sum[kPerCall] = {};
  load_first(args.x + first, n, whole, x);
  if (args.sum != nullptr) load_first(args.sum + first, n, whole, sum);
#pragma unroll
  for (int e = 0; e < kPerCall; ++e) {
    const uint32_t drawn = (bits[e / 2] >> (e % 2 * 16)) & 0xFFFF;
    const float kept =
        rounded<Dropped>(__fmul_rn(rounded<Dropped>(x[e]), scale));
    x[e] = drawn < rule.threshold ? 0 : kept;
    if (args.sum != nullptr) x[e] = __fadd_rn(sum[e], x[e]);
  }
  store_first(args.y + first, n, whole, x);
}

template <class X, class Y>
void drop(const CounterDropoutArgs<X, Y>& args, void* stream) {
  const auto aligned = [](const void* p) {
    return reinterpret_cast<uintptr_t>(p) % 16 == 0;
  };
  const int64_t calls_per_row = ceil_div(args.width, kPerCall);
  const int64_t calls = args.batch * args.length * calls_per_row;
  if (calls == 0) return;
  counter_dropout_kernel<<<grid_for(calls, kThreads, "counter_dropout"),
                           kThreads, 0, stream_of(stream)>>>(
      args, dropout_rule(args.probability), calls, calls_per_row,
      args.width % kPerCall == 0 && aligned(args.x) && aligned(args.y) &&
          aligned(args.sum));
  check_launch("counter_dropout");
}

}  // namespace

void counter_dropout(const CounterDropoutArgs<float>& args, void* stream) {
  drop(args, stream);
}

void counter_dropout(const CounterDropoutArgs<Bf16>& args, void* stream) {
  drop(args, stream);
}

void counter_dropout(const CounterDropoutArgs<float, Bf16>& args,
                     void* stream) {
  drop(args, stream);
}

void counter_dropout(const CounterDropoutArgs<Bf16, float>& args,
                     void* stream) {
  drop(args, stream);
}

}  // namespace reformer::kernels::cuda
