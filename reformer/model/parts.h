// Passes that take a part of the positions at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>

namespace reformer {

// Calls body(at, n) for consecutive parts of at most `chunk` of `length`.
template <class Body>
void for_each_part(int64_t length, int64_t chunk, const Body& body) {
  for (int64_t at = 0; at < length; at += chunk) {
    body(at, std::min(chunk, length - at));
  }
}

// Elements that a part of the positions may take, so that matmuls stay large
// and memory small: 16 MiB of float32 on a CPU, 128 MiB of bfloat16 on a GPU.
inline int64_t part_elements(at::DeviceType device) {
  return device == at::kCPU ? int64_t{4} << 20 : int64_t{64} << 20;
}

// y += f(x) on the way back, [batch, length, d_model] each.
struct ReversibleBranch {
  at::Tensor y;    // becomes what it was before f(x) was added
  at::Tensor x;    // is not changed
  at::Tensor d_y;  // the gradient of the sum, and so of f(x)
  at::Tensor d_x;  // the gradient that x has from elsewhere; f's is added

  ReversibleBranch narrow(int64_t at, int64_t n) const {
    return {y.narrow(1, at, n), x.narrow(1, at, n), d_y.narrow(1, at, n),
            d_x.narrow(1, at, n)};
  }
};

}  // namespace reformer
