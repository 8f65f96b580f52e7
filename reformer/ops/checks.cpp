#include "reformer/ops/checks.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <atomic>
#include <limits>

#include "reformer/base/errors.h"
#include "reformer/base/parallel.h"

namespace reformer {
namespace {

constexpr int64_t kMaxLength = std::numeric_limits<int32_t>::max();

void check_length(const char* op, const char* name, int64_t length) {
  require(length >= 1 && length <= kMaxLength, op, ": the length of ", name,
          " must be from 1 to ", kMaxLength, ", got ", length);
}

void check_same_device(const char* op, const char* name, const at::Tensor& x,
                       at::Device device) {
  require(x.device() == device, op, ": ", name, " must be on ", device.str(),
          ", as the other tensors, got ", x.device().str());
}

}  // namespace

void check_type_and_device(const char* op, const char* name,
                           const at::Tensor& x) {
  const auto type = x.scalar_type();
  require(x.is_cpu() || x.is_cuda(), op, ": ", name,
          " must be on the CPU or on CUDA, got ", x.device().str());
  require(
      type == at::kFloat || type == (x.is_cuda() ? at::kBFloat16 : at::kDouble),
      op, ": ", name, " must be float32 or ",
      x.is_cuda() ? "bfloat16 on CUDA" : "float64", ", got ",
      at::toString(type));
}

void check_vectors(const char* op, const char* name, const at::Tensor& x) {
  require(x.defined(), op, ": ", name, " must be a tensor, got none");
  require(x.dim() == 4, op, ": ", name,
          " must be [batch, heads, length, d_head], got sizes ", x.sizes());
  check_type_and_device(op, name, x);
  require(x.size(0) >= 1 && x.size(1) >= 1, op, ": ", name,
          " must have a batch and heads of at least 1, got sizes ", x.sizes());
  check_length(op, name, x.size(2));
  require(x.size(3) >= kMinHeadSize && x.size(3) <= kMaxHeadSize, op,
          ": d_head of ", name, " must be from ", kMinHeadSize, " to ",
          kMaxHeadSize, ", got ", x.size(3));
  require(!x.is_cuda() ||
              (x.size(3) % kMinHeadSize == 0 && x.size(3) <= kMaxCudaHeadSize),
          op, ": d_head of ", name, " must be a multiple of ", kMinHeadSize,
          " up to ", kMaxCudaHeadSize, " on CUDA, got ", x.size(3));
  require(!x.is_cuda() || (x.size(2) <= kMaxCudaLength &&
                           x.size(0) * x.size(1) <= kMaxCudaRows),
          op, ": on CUDA the length of ", name, " must be at most ",
          kMaxCudaLength, " and batch times heads at most ", kMaxCudaRows,
          ", got sizes ", x.sizes());
}

void check_like(const char* op, const char* name, const at::Tensor& x,
                const char* like_name, const at::Tensor& like) {
  require(x.defined(), op, ": ", name, " must be a tensor, got none");
  require(x.sizes() == like.sizes(), op, ": ", name, " must have the sizes of ",
          like_name, ", ", like.sizes(), ", got ", x.sizes());
  require(x.scalar_type() == like.scalar_type(), op, ": ", name,
          " must have the type of ", like_name, ", ",
          at::toString(like.scalar_type()), ", got ",
          at::toString(x.scalar_type()));
  check_same_device(op, name, x, like.device());
}

void check_mask(const char* op, const at::Tensor& mask, at::Device device,
                int64_t batch, int64_t length) {
  if (!mask.defined()) return;
  require(mask.scalar_type() == at::kBool, op, ": mask must be bool, got ",
          at::toString(mask.scalar_type()));
  require(mask.dim() == 2 && mask.size(0) == batch && mask.size(1) == length,
          op, ": mask must be [batch, length] = [", batch, ", ", length,
          "], got sizes ", mask.sizes());
  check_same_device(op, "mask", mask, device);
}

void check_successor_heads(const char* op, int64_t successor_heads,
                           const at::Tensor& x) {
  require(successor_heads >= 0 && successor_heads <= x.size(1), op,
          ": successor_heads must be 0 to ", x.size(1), ", got ",
          successor_heads);
}

void check_bucket_shape(const char* op, const at::Tensor& buckets) {
  require(buckets.defined(), op, ": buckets must be a tensor, got none");
  require(buckets.dim() == 4, op,
          ": buckets must be [batch, heads, rounds, length], got sizes ",
          buckets.sizes());
  require(buckets.scalar_type() == at::kUInt16, op,
          ": buckets must be uint16, got ",
          at::toString(buckets.scalar_type()));
  require(buckets.size(0) >= 1 && buckets.size(1) >= 1, op,
          ": buckets must have a batch and heads of at least 1, got sizes ",
          buckets.sizes());
  require(buckets.size(2) >= 1, op, ": rounds must be at least 1, got ",
          buckets.size(2));
  check_length(op, "buckets", buckets.size(3));
}

void check_bucket_range(const char* op, const at::Tensor& buckets,
                        int64_t n_buckets, const at::Tensor& mask) {
  if (buckets.is_cuda()) return;
  const auto ids = buckets.contiguous();
  const auto real = mask.defined() ? mask.contiguous() : mask;
  const int64_t length = ids.size(3);
  const int64_t rows_per_batch = ids.size(1) * ids.size(2);
  std::atomic<int64_t> largest{0};
  constexpr int64_t kMany = int64_t{1} << 14;
  const int64_t rows = ids.size(0) * rows_per_batch;
  parallel_tasks_if(ids.numel() > kMany, rows, [&](int64_t row) {
    const uint16_t* id = ids.const_data_ptr<uint16_t>() + row * length;
    const bool* is_real = real.defined()
                              ? mask_data(real) + row / rows_per_batch * length
                              : nullptr;
    int64_t here = 0;
    for (int64_t i = 0; i < length; ++i) {
      if (!is_real || is_real[i]) here = std::max<int64_t>(here, id[i]);
    }
    int64_t seen = largest.load();
    while (here > seen && !largest.compare_exchange_weak(seen, here)) {
    }
  });
  require(largest < n_buckets, op,
          ": buckets must be below n_buckets = ", n_buckets, ", got ",
          largest.load());
}

void check_on_cpu(const char* op, const char* name, const at::Tensor& x) {
  require(x.is_cpu(), op, ": ", name, " must be on the CPU, got ",
          x.device().str());
}

at::Tensor with_contiguous_rows(const at::Tensor& x) {
  if (!x.defined()) return x;
  bool fits = x.stride(3) == 1;
  if (x.is_cuda()) {
    constexpr uintptr_t kAlignment = 16;
    fits = fits &&
           reinterpret_cast<uintptr_t>(x.const_data_ptr()) % kAlignment == 0;
    for (int64_t dim = 0; dim < 3; ++dim) {
      const auto bytes = static_cast<uintptr_t>(x.stride(dim)) * x.itemsize();
      fits = fits && (x.size(dim) == 1 || bytes % kAlignment == 0);
    }
    fits = fits && stride_of(x, 2) <= std::numeric_limits<int32_t>::max();
  }
  return fits ? x : x.clone(at::MemoryFormat::Contiguous);
}

at::Tensor empty_rows_like(const at::Tensor& x) {
  if (!x.defined()) return x;
  // Of what overlaps, LibTorch orders the dimensions by their strides, and
  // vectors one element apart would come before their own elements.
  const auto y = at::empty_like(x);
  return y.stride(3) == 1 ? y : at::empty(x.sizes(), x.options());
}

const bool* mask_data(const at::Tensor& mask) {
  return mask.defined() ? mask.const_data_ptr<bool>() : nullptr;
}

}  // namespace reformer
