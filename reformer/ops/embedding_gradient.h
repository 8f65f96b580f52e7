// The gradient of a table from which rows were looked up.
#pragma once

#include <ATen/core/Tensor.h>

namespace reformer {

//   sum      [rows, width]   the table's gradient: sum[i] += scale * d[n] for
//                            every n with indices[n] == i
//   indices  [count] int64   in [0, rows): on a GPU nobody looks
//   d        [count, width]  of sum's type; rows may lie apart
//
// Without autograd, and with the same bits every time, on a GPU too (float32
// there): LibTorch's own gradient of `embedding` adds in any order on a GPU
// from 3,073 indices on.
void add_embedding_gradient(const at::Tensor& sum, const at::Tensor& indices,
                            const at::Tensor& d, double scale = 1);

}  // namespace reformer
