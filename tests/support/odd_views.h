// Views of q, k and v that no model makes, and every operation that takes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace reformer {

// [2, 3, 37, 16] out of the first kOddViewNumbers numbers of a tensor.
struct OddView {
  std::string name;
  std::vector<int64_t> strides;

  at::Tensor of(const at::Tensor& numbers) const;
};
inline constexpr int64_t kOddViewNumbers = 4096;

// Vectors that overlap, that are one and the same, whose numbers lie apart.
const std::vector<OddView>& odd_views();

struct VectorOperation {
  std::string name;
  std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v)>
      run;  // differentiable
};
std::vector<VectorOperation> vector_operations();

// Of every operation, with every view as q, k, v and gradient of the output:
// the output and the gradients are those of contiguous copies, within `most`
// relative to the largest.
void expect_views_are_copies(const at::TensorOptions& options, double most);

}  // namespace reformer
