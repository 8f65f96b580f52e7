// The checks that several operations share: shapes, types, and views for the
// kernels. All throw Error, naming the operation and the argument.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/kernels/rows.h"

namespace reformer {

inline constexpr int64_t kMinHeadSize = 8;
inline constexpr int64_t kMaxHeadSize = 256;

// A tensor [batch, heads, length, d_head] that the attention kernels take.
void check_vectors(const char* op, const char* name, const at::Tensor& x);

// `x` has the sizes, type and device of `like`.
void check_like(const char* op, const char* name, const at::Tensor& x,
                const char* like_name, const at::Tensor& like);

// Undefined, or [batch, length] bool on the CPU.
void check_mask(const char* op, const at::Tensor& mask, int64_t batch,
                int64_t length);

// [batch, heads, rounds, length] uint16 on the CPU, contents not looked at.
void check_bucket_shape(const char* op, const at::Tensor& buckets);

// Every bucket of a real position is below n_buckets.
void check_bucket_range(const char* op, const at::Tensor& buckets,
                        int64_t n_buckets, const at::Tensor& mask);

// The same tensor with the elements of a vector side by side.
at::Tensor with_contiguous_rows(const at::Tensor& x);

// The mask as the kernels take it: null where undefined. `mask` must be
// contiguous and outlive the pointer.
const bool* mask_data(const at::Tensor& mask);

template <class T>
kernels::Rows<const T> rows_of(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {x.const_data_ptr<T>(), x.stride(0), x.stride(1), x.stride(2)};
}

template <class T>
kernels::Rows<T> mutable_rows_of(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {x.mutable_data_ptr<T>(), x.stride(0), x.stride(1), x.stride(2)};
}

}  // namespace reformer
