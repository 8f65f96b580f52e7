#include "reformer/ops/bucket_sort.h"

#include <ATen/ops/empty.h>

#include "reformer/core/bucket_count.h"
#include "reformer/core/errors.h"
#include "reformer/kernels/bucket_sort.h"
#include "reformer/ops/checks.h"

namespace reformer {

SortedRounds bucket_sort(const at::Tensor& buckets, int64_t n_buckets,
                         const at::Tensor& mask) {
  constexpr const char* kOp = "bucket_sort";
  check_bucket_shape(kOp, buckets);
  const int64_t batch = buckets.size(0);
  const int64_t heads = buckets.size(1);
  const int64_t rounds = buckets.size(2);
  const int64_t length = buckets.size(3);
  check_mask(kOp, mask, batch, length);
  require(n_buckets >= 1 && n_buckets <= kMaxBuckets, kOp,
          ": n_buckets must be from 1 to ", kMaxBuckets, ", got ", n_buckets);
  check_bucket_range(kOp, buckets, n_buckets, mask);

  SortedRounds sorted{at::empty({batch, heads, rounds, length}, at::kInt),
                      at::empty({batch, heads, length, rounds}, at::kInt)};
  const auto ids = buckets.contiguous();
  const auto real = mask.defined() ? mask.contiguous() : mask;
  kernels::cpu::bucket_sort({ids.const_data_ptr<uint16_t>(), mask_data(real),
                             sorted.order.mutable_data_ptr<int32_t>(),
                             sorted.place.mutable_data_ptr<int32_t>(), batch,
                             heads, rounds, length, n_buckets});
  return sorted;
}

}  // namespace reformer
