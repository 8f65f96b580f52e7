#include "reformer/ops/checks.h"

#include <atomic>
#include <limits>

#include "reformer/core/errors.h"
#include "reformer/core/parallel.h"

namespace reformer {
namespace {

constexpr int64_t kMaxLength = std::numeric_limits<int32_t>::max();

void check_length(const char* op, const char* name, int64_t length) {
  require(length >= 1 && length <= kMaxLength, op, ": the length of ", name,
          " must be from 1 to ", kMaxLength, ", got ", length);
}

void check_on_cpu(const char* op, const char* name, const at::Tensor& x) {
  require(x.device().is_cpu(), op, ": ", name,
          " must be on the CPU, the only device of this build, got ",
          x.device().str());
}

}  // namespace

void check_vectors(const char* op, const char* name, const at::Tensor& x) {
  require(x.defined(), op, ": ", name, " must be a tensor, got none");
  require(x.dim() == 4, op, ": ", name,
          " must be [batch, heads, length, d_head], got sizes ", x.sizes());
  require(x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble, op,
          ": ", name, " must be float32 or float64, got ",
          at::toString(x.scalar_type()));
  check_on_cpu(op, name, x);
  require(x.size(0) >= 1 && x.size(1) >= 1, op, ": ", name,
          " must have a batch and heads of at least 1, got sizes ", x.sizes());
  check_length(op, name, x.size(2));
  require(x.size(3) >= kMinHeadSize && x.size(3) <= kMaxHeadSize, op,
          ": d_head of ", name, " must be from ", kMinHeadSize, " to ",
          kMaxHeadSize, ", got ", x.size(3));
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
  check_on_cpu(op, name, x);
}

void check_mask(const char* op, const at::Tensor& mask, int64_t batch,
                int64_t length) {
  if (!mask.defined()) return;
  require(mask.scalar_type() == at::kBool, op, ": mask must be bool, got ",
          at::toString(mask.scalar_type()));
  require(mask.dim() == 2 && mask.size(0) == batch && mask.size(1) == length,
          op, ": mask must be [batch, length] = [", batch, ", ", length,
          "], got sizes ", mask.sizes());
  check_on_cpu(op, "mask", mask);
}

void check_bucket_shape(const char* op, const at::Tensor& buckets) {
  require(buckets.defined(), op, ": buckets must be a tensor, got none");
  require(buckets.dim() == 4, op,
          ": buckets must be [batch, heads, rounds, length], got sizes ",
          buckets.sizes());
  require(buckets.scalar_type() == at::kUInt16, op,
          ": buckets must be uint16, got ",
          at::toString(buckets.scalar_type()));
  check_on_cpu(op, "buckets", buckets);
  require(buckets.size(0) >= 1 && buckets.size(1) >= 1, op,
          ": buckets must have a batch and heads of at least 1, got sizes ",
          buckets.sizes());
  require(buckets.size(2) >= 1, op, ": rounds must be at least 1, got ",
          buckets.size(2));
  check_length(op, "buckets", buckets.size(3));
}

void check_bucket_range(const char* op, const at::Tensor& buckets,
                        int64_t n_buckets, const at::Tensor& mask) {
  const auto ids = buckets.contiguous();
  const auto real = mask.defined() ? mask.contiguous() : mask;
  const int64_t length = ids.size(3);
  const int64_t rows_per_batch = ids.size(1) * ids.size(2);
  std::atomic<int64_t> largest{0};
  parallel_tasks(ids.size(0) * rows_per_batch, [&](int64_t row) {
    const uint16_t* id = ids.const_data_ptr<uint16_t>() + row * length;
    const bool* is_real =
        real.defined() ? mask_data(real) + row / rows_per_batch * length
                       : nullptr;
    int64_t here = 0;
    for (int64_t i = 0; i < length; ++i) {
      if (!is_real || is_real[i]) here = std::max<int64_t>(here, id[i]);
    }
    int64_t seen = largest.load();
    while (here > seen && !largest.compare_exchange_weak(seen, here)) {
    }
  });
  require(largest < n_buckets, op, ": buckets must be below n_buckets = ",
          n_buckets, ", got ", largest.load());
}

at::Tensor with_contiguous_rows(const at::Tensor& x) {
  return !x.defined() || x.stride(3) == 1 ? x : x.contiguous();
}

const bool* mask_data(const at::Tensor& mask) {
  return mask.defined() ? mask.const_data_ptr<bool>() : nullptr;
}

}  // namespace reformer
