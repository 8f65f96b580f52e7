#include "reformer/kernels/short_convolution.h"

#include "reformer/kernels/cuda/eight.cuh"
#include "reformer/kernels/cuda/launch.h"

// A thread owns eight columns of a strip of positions, and holds the last
// positions in registers: everything is read once, but for `taps` positions
// beside each strip, and written once. Strips of gradients are read from their
// end, and what is held of d serves both x and the weights, whose sums stay in
// registers, are added over the threads of a block, then over the blocks of a
// head, always in the same order.
namespace reformer::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kEight = 8;
constexpr int64_t kStrip = 32;

// The last positions, the newest first.
template <int kTaps>
struct Window {
  float x[kTaps][kEight];

  __device__ void push(const float (&newest)[kEight]) {
#pragma unroll
    for (int t = kTaps - 1; t >= 0; --t) {
#pragma unroll
      for (int i = 0; i < kEight; ++i) {
        x[t][i] = t > 0 ? x[t > 0 ? t - 1 : 0][i] : newest[i];
      }
    }
  }
};

template <class T>
__device__ void load_row(const Rows<const T>& rows, const T* head, int64_t row,
                         int64_t length, float (&x)[kEight]) {
  if (row >= 0 && row < length) {
    unpack(load_eight(head + row * rows.row_stride), x);
  } else {
#pragma unroll
    for (int i = 0; i < kEight; ++i) x[i] = 0;
  }
}

template <int kTaps>
__device__ void load_weights(const float* weight, int64_t tap_stride,
                             float (&w)[kTaps][kEight]) {
#pragma unroll
  for (int t = 0; t < kTaps; ++t) {
    unpack(load_eight(weight + t * tap_stride), w[t]);
  }
}

// now + the sum of w_t times what the window has of t + 1 steps ago.
template <int kTaps>
__device__ void add_taps(const float (&now)[kEight],
                         const Window<kTaps>& window,
                         const float (&w)[kTaps][kEight],
                         float (&sum)[kEight]) {
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    sum[i] = now[i];
#pragma unroll
    for (int t = 0; t < kTaps; ++t) sum[i] += w[t][i] * window.x[t][i];
  }
}

template <class T, int kTaps>
__global__ void __launch_bounds__(kThreads) short_convolution_kernel(
    const __grid_constant__ ShortConvolutionArgs<T> args) {
  const auto& shape = args.shape;
  const int64_t groups = shape.d_head / kEight;
  const int64_t strips = (shape.length + kStrip - 1) / kStrip;
  const int64_t task = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  const int64_t column = task % groups * kEight;
  const int64_t head = task / groups % shape.heads;
  const int64_t strip = task / groups / shape.heads % strips;
  const int64_t batch = task / groups / shape.heads / strips;
  if (batch >= shape.batch) return;
  float w[kTaps][kEight];
  load_weights<kTaps>(args.weight + head * shape.d_head + column,
                      shape.heads * shape.d_head, w);
  const T* x = args.x.head(batch, head) + column;
  T* y = args.y.head(batch, head) + column;
  const int64_t begin = strip * kStrip;
  Window<kTaps> window;
  float now[kEight];
#pragma unroll
  for (int t = kTaps; t > 0; --t) {
    load_row(args.x, x, begin - t, shape.length, now);
    window.push(now);
  }
#pragma unroll 4
  for (int64_t row = begin; row < min(begin + kStrip, shape.length); ++row) {
    load_row(args.x, x, row, shape.length, now);
    float sum[kEight];
    add_taps(now, window, w, sum);
    store_eight(y + row * args.y.row_stride, sum);
    window.push(now);
  }
}

// Writes the strip's d_x, and adds its products x_i d_(i+t) to `sums`.
template <class T, int kTaps>
__device__ void strip_gradients(const ConvolutionGradArgs<T>& args,
                                int64_t batch, int64_t head, int64_t column,
                                int64_t begin, const float (&w)[kTaps][kEight],
                                float (&sums)[kTaps][kEight]) {
  const int64_t length = args.shape.length;
  const T* x = args.x.head(batch, head) + column;
  const T* d = args.d.head(batch, head) + column;
  T* d_x = args.d_x.head(batch, head) + column;
  const int64_t last = min(begin + kStrip, length) - 1;
  Window<kTaps> window;
  float now[kEight];
#pragma unroll
  for (int t = kTaps; t > 0; --t) {
    load_row(args.d, d, last + t, length, now);
    window.push(now);
  }
#pragma unroll 4
  for (int64_t row = last; row >= begin; --row) {
    float own[kEight];
    load_row(args.x, x, row, length, own);
    load_row(args.d, d, row, length, now);
    float sum[kEight];
    add_taps(now, window, w, sum);
    store_eight(d_x + row * args.d_x.row_stride, sum);
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
#pragma unroll
      for (int i = 0; i < kEight; ++i) sums[t][i] += own[i] * window.x[t][i];
    }
    window.push(now);
  }
}

// A block takes every kConvolutionPartials-th group of strips of a head.
template <class T, int kTaps>
__global__ void __launch_bounds__(kThreads) convolution_grad_kernel(
    const __grid_constant__ ConvolutionGradArgs<T> args) {
  // [lanes, d_head]
  __shared__ __align__(16) float shared[kThreads * kEight];
  const auto& shape = args.shape;
  const int64_t head = blockIdx.y;
  const int groups = static_cast<int>(shape.d_head / kEight);
  const int lanes = kThreads / groups;
  const int lane = static_cast<int>(threadIdx.x) / groups;
  const int64_t column = threadIdx.x % groups * kEight;
  const int64_t strips = (shape.length + kStrip - 1) / kStrip;
  float w[kTaps][kEight];
  load_weights<kTaps>(args.weight + head * shape.d_head + column,
                      shape.heads * shape.d_head, w);
  float sums[kTaps][kEight] = {};
  for (int64_t strip = blockIdx.x * int64_t{lanes} + lane;
       lane < lanes && strip < shape.batch * strips;
       strip += kConvolutionPartials * lanes) {
    strip_gradients<T, kTaps>(args, strip / strips, head, column,
                              strip % strips * kStrip, w, sums);
  }
#pragma unroll
  for (int t = 0; t < kTaps; ++t) {
    __syncthreads();
    if (lane < lanes) {
      store_eight(shared + lane * shape.d_head + column, sums[t]);
    }
    __syncthreads();
    if (threadIdx.x >= shape.d_head) continue;
    float total = 0;
    for (int of = 0; of < lanes; ++of) {
      total += shared[of * shape.d_head + threadIdx.x];
    }
    args.partial[((blockIdx.x * kTaps + t) * shape.heads + head) *
                     shape.d_head +
                 threadIdx.x] = total;
  }
}

__global__ void add_partials_kernel(const float* partial, float* sums,
                                    int64_t count) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i >= count) return;
  float total = 0;
#pragma unroll 8
  for (int64_t part = 0; part < kConvolutionPartials; ++part) {
    total += partial[part * count + i];
  }
  sums[i] = total;
}

// A thread owns a column of a row.
template <class T>
__global__ void __launch_bounds__(kThreads) next_convolution_kernel(
    const __grid_constant__ NextConvolutionArgs<T> args) {
  const auto& shape = args.shape;
  const int64_t task = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  const int64_t column = task % shape.d_head;
  const int64_t row = task / shape.d_head;  // of [batch, heads]
  const int64_t head = row % shape.heads;
  const int64_t batch = row / shape.heads;
  if (batch >= shape.batch) return;
  const T* x = args.x.head(batch, head) + column;
  T* recent = args.recent + row * shape.taps * shape.d_head + column;
  // In the order in which short_convolution_kernel adds: a bucket depends on
  // the last bit.
  float sum = to_float(*x);
  T newer = *x;
  for (int64_t t = 0; t < shape.taps; ++t) {
    const T before = recent[t * shape.d_head];
    sum += args.weight[(t * shape.heads + head) * shape.d_head + column] *
           to_float(before);
    recent[t * shape.d_head] = newer;
    newer = before;
  }
  store(args.y.head(batch, head) + column, sum);
}

// Calls run with the number of taps as a constant.
template <class Run>
void with_taps(int64_t taps, const char* name, const Run& run) {
  static_assert(kMostConvolutionTaps == 4);
  require(taps >= 1 && taps <= kMostConvolutionTaps, name, ": 1 to ",
          kMostConvolutionTaps, " taps are required, got ", taps);
  if (taps == 1) return run(std::integral_constant<int, 1>());
  if (taps == 2) return run(std::integral_constant<int, 2>());
  if (taps == 3) return run(std::integral_constant<int, 3>());
  run(std::integral_constant<int, 4>());
}

template <class T>
void convolve(const ShortConvolutionArgs<T>& args, void* stream) {
  constexpr const char* kName = "short_convolution";
  const auto& shape = args.shape;
  const int64_t tasks = shape.batch * shape.heads *
                        ceil_div(shape.length, kStrip) * shape.d_head / kEight;
  if (tasks == 0) return;
  with_taps(shape.taps, kName, [&](auto taps) {
    short_convolution_kernel<T, taps()>
        <<<grid_for(tasks, kThreads, kName), kThreads, 0, stream_of(stream)>>>(
            args);
  });
  check_launch(kName);
}

template <class T>
void go_back(const ConvolutionGradArgs<T>& args, void* stream) {
  constexpr const char* kName = "short_convolution_grad";
  const auto& shape = args.shape;
  const int64_t count = shape.taps * shape.heads * shape.d_head;
  if (count == 0) return;
  require(shape.d_head <= kThreads, kName, ": heads of at most ", kThreads,
          " columns are required, got ", shape.d_head);
  const dim3 grid(static_cast<unsigned>(kConvolutionPartials),
                  static_cast<unsigned>(shape.heads));
  with_taps(shape.taps, kName, [&](auto taps) {
    convolution_grad_kernel<T, taps()>
        <<<grid, kThreads, 0, stream_of(stream)>>>(args);
  });
  check_launch(kName);
  add_partials_kernel<<<grid_for(count, kThreads, kName), kThreads, 0,
                        stream_of(stream)>>>(args.partial, args.d_weight,
                                             count);
  check_launch("short_convolution_grad: sums");
}

template <class T>
void convolve_next(const NextConvolutionArgs<T>& args, void* stream) {
  constexpr const char* kName = "next_convolution";
  const auto& shape = args.shape;
  const int64_t tasks = shape.batch * shape.heads * shape.d_head;
  if (tasks == 0) return;
  next_convolution_kernel<<<grid_for(tasks, kThreads, kName), kThreads, 0,
                            stream_of(stream)>>>(args);
  check_launch(kName);
}

}  // namespace

void short_convolution(const ShortConvolutionArgs<float>& args, void* stream) {
  convolve(args, stream);
}
void short_convolution(const ShortConvolutionArgs<Bf16>& args, void* stream) {
  convolve(args, stream);
}

void short_convolution_grad(const ConvolutionGradArgs<float>& args,
                            void* stream) {
  go_back(args, stream);
}
void short_convolution_grad(const ConvolutionGradArgs<Bf16>& args,
                            void* stream) {
  go_back(args, stream);
}

void next_convolution(const NextConvolutionArgs<float>& args, void* stream) {
  convolve_next(args, stream);
}
void next_convolution(const NextConvolutionArgs<Bf16>& args, void* stream) {
  convolve_next(args, stream);
}

}  // namespace reformer::kernels::cuda
