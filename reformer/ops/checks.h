// The checks that several operations share: shapes, types, and views for the
// kernels. All throw Error, naming the operation and the argument.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/config/head_sizes.h"
#include "reformer/kernels/rows.h"

namespace reformer {

// On CUDA: multiples of kMinHeadSize.
inline constexpr int64_t kMaxCudaHeadSize = 128;
inline constexpr int64_t kMaxCudaLength = 1 << 23;  // places as floats
inline constexpr int64_t kMaxCudaRows = 65535;      // batch * heads: a grid's

// float32 or float64 on the CPU, float32 or bfloat16 on CUDA.
void check_type_and_device(const char* op, const char* name,
                           const at::Tensor& x);

// A tensor [batch, heads, length, d_head] that the attention kernels take,
// of such a type.
void check_vectors(const char* op, const char* name, const at::Tensor& x);

// `x` has the sizes, type and device of `like`.
void check_like(const char* op, const char* name, const at::Tensor& x,
                const char* like_name, const at::Tensor& like);

// Undefined, or [batch, length] bool on that device.
void check_mask(const char* op, const at::Tensor& mask, at::Device device,
                int64_t batch, int64_t length);

// 0 to the heads of `x`.
void check_successor_heads(const char* op, int64_t successor_heads,
                           const at::Tensor& x);

// [batch, heads, rounds, length] uint16, contents not looked at.
void check_bucket_shape(const char* op, const at::Tensor& buckets);

// Every bucket of a real position is below n_buckets. Not looked at on CUDA,
// where that would wait for the device; kernels there tolerate others.
void check_bucket_range(const char* op, const at::Tensor& buckets,
                        int64_t n_buckets, const at::Tensor& mask);

// For operations that no CUDA kernel has.
void check_on_cpu(const char* op, const char* name, const at::Tensor& x);

// The same tensor with the elements of a vector side by side and, on CUDA,
// every vector at a multiple of 16 bytes, less than 2^31 elements apart.
// Vectors may overlap: it is for reading.
at::Tensor with_contiguous_rows(const at::Tensor& x);

// As much, to be written: laid out as `x` is, which has its vectors so, but for
// those that overlap. Undefined where x is.
at::Tensor empty_rows_like(const at::Tensor& x);

// The mask as the kernels take it: null where undefined. `mask` must be
// contiguous and outlive the pointer.
const bool* mask_data(const at::Tensor& mask);

// 0 of a size of 1, whose stride may be any number.
inline int64_t stride_of(const at::Tensor& x, int64_t dim) {
  return x.size(dim) == 1 ? 0 : x.stride(dim);
}

// T is the tensor's own type, or kernels::Bf16 for bfloat16.
template <class T>
kernels::Rows<const T> rows_of(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {static_cast<const T*>(x.const_data_ptr()), stride_of(x, 0),
          stride_of(x, 1), stride_of(x, 2)};
}

template <class T>
kernels::Rows<T> mutable_rows_of(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {static_cast<T*>(x.mutable_data_ptr()), stride_of(x, 0),
          stride_of(x, 1), stride_of(x, 2)};
}

}  // namespace reformer
