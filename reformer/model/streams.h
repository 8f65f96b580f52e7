// The two residual streams, and how their end is read (paper Sec. 3).
#pragma once

#include <ATen/core/Tensor.h>

namespace reformer {

// [batch, length, d_model] each.
struct Streams {
  at::Tensor x1;
  at::Tensor x2;

  at::Tensor& operator[](int stream) { return stream == 0 ? x1 : x2; }
  const at::Tensor& operator[](int stream) const {
    return stream == 0 ? x1 : x2;
  }
};

// concat(Y1, Y2) of a language model, (Y1 + Y2) / 2 of an encoder-decoder, as
// the authors have them; Y1 where there is one stream.
enum class Join { kConcat, kMean, kFirst };

// How wide joined streams of d_model are.
int64_t joined_width(int64_t d_model, Join join);

// [batch, length, joined_width].
at::Tensor joined(const Streams& y, Join join);

// Writes to d_y what the streams get of d, the gradient of the joined ones; of
// Join::kFirst nothing to the second.
void split_gradient(const at::Tensor& d, Join join, const Streams& d_y);

}  // namespace reformer
