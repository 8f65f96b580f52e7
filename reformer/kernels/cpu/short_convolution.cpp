#include "reformer/kernels/short_convolution.h"

#include <algorithm>

#include "reformer/base/parallel.h"

namespace reformer::kernels::cpu {
namespace {

constexpr int64_t kPositions = 256;  // of a task

// to = from + the sum of weight_t times the row `t * step` rows away, of which
// there are `known`.
template <class T>
void add_taps(const ConvolutionShape& shape, const T* weight, const T* from,
              int64_t step, int64_t known, T* to) {
  std::copy_n(from, shape.d_head, to);
  for (int64_t t = 1; t <= std::min(shape.taps, known); ++t) {
    const T* other = from + t * step;
    const T* w = weight + (t - 1) * shape.heads * shape.d_head;
    for (int64_t c = 0; c < shape.d_head; ++c) to[c] += w[c] * other[c];
  }
}

// Calls run(batch, head, row) for every row.
template <class Run>
void for_each_row(const ConvolutionShape& shape, const Run& run) {
  const int64_t parts = (shape.length + kPositions - 1) / kPositions;
  parallel_tasks(shape.batch * shape.heads * parts, [&](int64_t task) {
    const int64_t head = task / parts % shape.heads;
    const int64_t batch = task / parts / shape.heads;
    const int64_t begin = task % parts * kPositions;
    const int64_t end = std::min(begin + kPositions, shape.length);
    for (int64_t row = begin; row < end; ++row) run(batch, head, row);
  });
}

template <class T>
void convolve(const ShortConvolutionArgs<T>& args) {
  for_each_row(args.shape, [&](int64_t batch, int64_t head, int64_t row) {
    add_taps(args.shape, args.weight + head * args.shape.d_head,
             args.x.head(batch, head) + row * args.x.row_stride,
             -args.x.row_stride, row,
             args.y.head(batch, head) + row * args.y.row_stride);
  });
}

// Of one head and every kConvolutionPartials-th part of the positions.
template <class T>
void add_partial(const ConvolutionGradArgs<T>& args, int64_t head,
                 int64_t partial) {
  const auto& [batches, heads, length, d_head, taps] = args.shape;
  T* sums = args.partial + (partial * taps * heads + head) * d_head;
  for (int64_t t = 1; t <= taps; ++t) {
    std::fill_n(sums + (t - 1) * heads * d_head, d_head, T{0});
  }
  const int64_t parts = (length + kPositions - 1) / kPositions;
  for (int64_t part = partial; part < batches * parts;
       part += kConvolutionPartials) {
    const T* x = args.x.head(part / parts, head);
    const T* d = args.d.head(part / parts, head);
    const int64_t begin = part % parts * kPositions;
    const int64_t end = std::min(begin + kPositions, length);
    for (int64_t row = begin; row < end; ++row) {
      const T* own = d + row * args.d.row_stride;
      for (int64_t t = 1; t <= std::min(taps, row); ++t) {
        const T* before = x + (row - t) * args.x.row_stride;
        T* sum = sums + (t - 1) * heads * d_head;
        for (int64_t c = 0; c < d_head; ++c) sum[c] += own[c] * before[c];
      }
    }
  }
}

template <class T>
void go_back(const ConvolutionGradArgs<T>& args) {
  const auto& shape = args.shape;
  for_each_row(shape, [&](int64_t batch, int64_t head, int64_t row) {
    add_taps(shape, args.weight + head * shape.d_head,
             args.d.head(batch, head) + row * args.d.row_stride,
             args.d.row_stride, shape.length - 1 - row,
             args.d_x.head(batch, head) + row * args.d_x.row_stride);
  });
  parallel_tasks(shape.heads * kConvolutionPartials, [&](int64_t task) {
    add_partial(args, task % shape.heads, task / shape.heads);
  });
  const int64_t count = shape.taps * shape.heads * shape.d_head;
  std::fill_n(args.d_weight, count, T{0});
  for (int64_t partial = 0; partial < kConvolutionPartials; ++partial) {
    const T* from = args.partial + partial * count;
    for (int64_t i = 0; i < count; ++i) args.d_weight[i] += from[i];
  }
}

template <class T>
void convolve_next(const NextConvolutionArgs<T>& args) {
  const auto& [batches, heads, length, d_head, taps] = args.shape;
  for (int64_t task = 0; task < batches * heads; ++task) {
    const int64_t head = task % heads;
    const T* x = args.x.head(task / heads, head);
    T* y = args.y.head(task / heads, head);
    T* recent = args.recent + task * taps * d_head;
    std::copy_n(x, d_head, y);
    for (int64_t t = 0; t < taps; ++t) {
      const T* w = args.weight + (t * heads + head) * d_head;
      for (int64_t c = 0; c < d_head; ++c)
        y[c] += w[c] * recent[t * d_head + c];
    }
    std::copy_backward(recent, recent + (taps - 1) * d_head,
                       recent + taps * d_head);
    std::copy_n(x, d_head, recent);
  }
}

}  // namespace

void short_convolution(const ShortConvolutionArgs<float>& args) {
  convolve(args);
}
void short_convolution(const ShortConvolutionArgs<double>& args) {
  convolve(args);
}

void short_convolution_grad(const ConvolutionGradArgs<float>& args) {
  go_back(args);
}
void short_convolution_grad(const ConvolutionGradArgs<double>& args) {
  go_back(args);
}

void next_convolution(const NextConvolutionArgs<float>& args) {
  convolve_next(args);
}
void next_convolution(const NextConvolutionArgs<double>& args) {
  convolve_next(args);
}

}  // namespace reformer::kernels::cpu
