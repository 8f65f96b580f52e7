// Rows of a tensor, where ranks have different ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace reformer {

// Some of a tensor's rows; a number without dimensions is one.
struct RowRange {
  int64_t first = 0;
  int64_t count = 0;
};

inline int64_t row_count(at::IntArrayRef sizes) {
  return sizes.empty() ? 1 : sizes[0];
}

// Shares x's memory.
inline at::Tensor rows_in(const at::Tensor& x, const RowRange& rows) {
  return x.dim() == 0 ? x : x.narrow(0, rows.first, rows.count);
}

}  // namespace reformer
