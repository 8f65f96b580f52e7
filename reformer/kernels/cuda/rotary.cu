#include "reformer/kernels/rotary.h"

#include "reformer/kernels/cuda/eight.cuh"
#include "reformer/kernels/cuda/launch.h"

// A thread owns some pairs of columns of one position, whose angles it computes
// once for all heads, or some columns that stay as they are; neighbours have
// neighbouring ones. Everything is read and written once.
namespace reformer::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct Turns {
  double of_pair[kMaxRotaryPairs];  // radians a position / 2 pi
};

template <class T>
__device__ void load_columns(const T* from, float (&x)[8]) {
  unpack(load_eight(from), x);
}
template <class T>
__device__ void load_columns(const T* from, float (&x)[1]) {
  x[0] = to_float(*from);
}
template <class T>
__device__ void store_columns(T* to, const float (&x)[8]) {
  store_eight(to, x);
}
template <class T>
__device__ void store_columns(T* to, const float (&x)[1]) {
  store(to, x[0]);
}

template <class T, int kColumns>
__device__ void copy_columns(const T* x, T* y) {
  float own[kColumns];
  load_columns(x, own);
  store_columns(y, own);
}

// The pairs are a multiple of kColumns, 8 or 1.
template <class T, int kColumns>
__global__ void __launch_bounds__(kThreads)
    rotary_kernel(const __grid_constant__ RotaryArgs<T> args,
                  const __grid_constant__ Turns turns) {
  const int64_t turning = args.pairs / kColumns;
  const int64_t staying = (args.d_head - 2 * args.pairs) / kColumns;
  const int64_t task = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  const int64_t own = task % (turning + staying);
  const int64_t row = task / (turning + staying) % args.length;
  const int64_t batch = task / (turning + staying) / args.length;
  if (batch >= args.batch) return;
  const auto x_of = [&](int64_t head) {
    return args.x.head(batch, head) + row * args.x.row_stride;
  };
  const auto y_of = [&](int64_t head) {
    return args.y.head(batch, head) + row * args.y.row_stride;
  };
  if (own >= turning) {
    const int64_t column = 2 * args.pairs + (own - turning) * kColumns;
#pragma unroll 4
    for (int64_t head = 0; head < args.heads; ++head) {
      copy_columns<T, kColumns>(x_of(head) + column, y_of(head) + column);
    }
    return;
  }
  const int64_t column = own * kColumns;
#pragma unroll 4
  for (int64_t head = 0; head < args.first_head; ++head) {
    copy_columns<T, kColumns>(x_of(head) + column, y_of(head) + column);
    copy_columns<T, kColumns>(x_of(head) + column + args.pairs,
                              y_of(head) + column + args.pairs);
  }
  const int64_t position =
      (args.first != nullptr ? args.first[batch] : 0) + row;
  float sine[kColumns];
  float cosine[kColumns];
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    // In float64, whole turns taken away: a float knows no angle of a million.
    const double turned = double(position) * turns.of_pair[column + i];
    sincospif(2 * static_cast<float>(turned - rint(turned)), &sine[i],
              &cosine[i]);
    if (args.back) sine[i] = -sine[i];
  }
#pragma unroll 4
  for (int64_t head = args.first_head; head < args.heads; ++head) {
    float a[kColumns];
    float b[kColumns];
    load_columns(x_of(head) + column, a);
    load_columns(x_of(head) + column + args.pairs, b);
    float turned_a[kColumns];
    float turned_b[kColumns];
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      turned_a[i] = a[i] * cosine[i] - b[i] * sine[i];
      turned_b[i] = a[i] * sine[i] + b[i] * cosine[i];
    }
    store_columns(y_of(head) + column, turned_a);
    store_columns(y_of(head) + column + args.pairs, turned_b);
  }
}

template <class T>
void turn(const RotaryArgs<T>& args, void* stream) {
  constexpr const char* kName = "rotary";
  constexpr double kTwoPi = 6.283185307179586;
  if (args.batch * args.length == 0) return;
  Turns turns{};
  for (int64_t c = 0; c < args.pairs; ++c) {
    turns.of_pair[c] = radians_of_pair(c, args.pairs) / kTwoPi;
  }
  const auto launch = [&]<int kColumns>() {
    const int64_t tasks =
        args.batch * args.length * (args.d_head - args.pairs) / kColumns;
    rotary_kernel<T, kColumns>
        <<<grid_for(tasks, kThreads, kName), kThreads, 0, stream_of(stream)>>>(
            args, turns);
  };
  args.pairs % 8 == 0 ? launch.template operator()<8>()
                      : launch.template operator()<1>();
  check_launch(kName);
}

}  // namespace

void rotary(const RotaryArgs<float>& args, void* stream) { turn(args, stream); }
void rotary(const RotaryArgs<Bf16>& args, void* stream) { turn(args, stream); }

}  // namespace reformer::kernels::cuda
