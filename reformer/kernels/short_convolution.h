// Short causal convolutions, a filter of its own for each column: a position is
// mixed with the few before it.
#pragma once

#include <cstdint>

#include "reformer/config/convolution_limits.h"
#include "reformer/kernels/bf16.h"
#include "reformer/kernels/rows.h"

namespace reformer::kernels {

// Weights are float32, and float64 where the rows are.
template <class T>
struct ConvolutionWeight {
  using Type = float;
};
template <>
struct ConvolutionWeight<double> {
  using Type = double;
};

struct ConvolutionShape {
  int64_t batch;
  int64_t heads;
  int64_t length;
  int64_t d_head;
  int64_t taps;
};

// y_i = x_i + sum over t = 1 .. taps of weight_t x_(i-t); nothing stands before
// the first position.
template <class T>
struct ShortConvolutionArgs {
  Rows<const T> x;  // [batch, heads, length, d_head]
  Rows<T> y;        // likewise, written; not x
  const typename ConvolutionWeight<T>::Type* weight;  // [taps, heads, d_head]
  ConvolutionShape shape;
};

// Of y's gradient d: that of x, d_x_i = d_i + sum of weight_t d_(i+t), and that
// of the weights, the sum over all i of x_i d_(i+t).
template <class T>
struct ConvolutionGradArgs {
  using Weight = typename ConvolutionWeight<T>::Type;

  Rows<const T> x;
  Rows<const T> d;
  Rows<T> d_x;  // written; not d
  const Weight* weight;
  Weight* partial;   // [partials, taps, heads, d_head], working memory
  Weight* d_weight;  // [taps, heads, d_head], written
  ConvolutionShape shape;
};

// Of short_convolution_grad's working memory.
inline constexpr int64_t kConvolutionPartials = 64;

// One position more of every row of the batch.
template <class T>
struct NextConvolutionArgs {
  Rows<const T> x;  // [batch, heads, 1, d_head]
  Rows<T> y;        // likewise, written; not x
  T* recent;  // [batch, heads, taps, d_head]: the x before, the last one first;
              // x becomes the first
  const typename ConvolutionWeight<T>::Type* weight;
  ConvolutionShape shape;
};

namespace cpu {
void short_convolution(const ShortConvolutionArgs<float>& args);
void short_convolution(const ShortConvolutionArgs<double>& args);
void short_convolution_grad(const ConvolutionGradArgs<float>& args);
void short_convolution_grad(const ConvolutionGradArgs<double>& args);
void next_convolution(const NextConvolutionArgs<float>& args);
void next_convolution(const NextConvolutionArgs<double>& args);
}  // namespace cpu

// d_head is a multiple of 8, and rows lie at multiples of 16 bytes.
namespace cuda {
void short_convolution(const ShortConvolutionArgs<float>& args, void* stream);
void short_convolution(const ShortConvolutionArgs<Bf16>& args, void* stream);
void short_convolution_grad(const ConvolutionGradArgs<float>& args,
                            void* stream);
void short_convolution_grad(const ConvolutionGradArgs<Bf16>& args,
                            void* stream);
void next_convolution(const NextConvolutionArgs<float>& args, void* stream);
void next_convolution(const NextConvolutionArgs<Bf16>& args, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
