#include "reformer/ops/bucket_sort.h"

#include <ATen/ops/empty.h>

#include "reformer/base/errors.h"
#include "reformer/config/bucket_count.h"
#include "reformer/device/device.h"
#include "reformer/kernels/bucket_sort.h"
#include "reformer/ops/checks.h"

namespace reformer {

SortedRounds bucket_sort(const at::Tensor& buckets, int64_t n_buckets,
                         const at::Tensor& mask, int64_t natural_rounds,
                         const kernels::LshIntervalsArgs* intervals) {
  constexpr const char* kOp = "bucket_sort";
  check_bucket_shape(kOp, buckets);
  const int64_t batch = buckets.size(0);
  const int64_t heads = buckets.size(1);
  const int64_t rounds = natural_rounds + buckets.size(2);
  const int64_t length = buckets.size(3);
  check_mask(kOp, mask, buckets.device(), batch, length);
  require(n_buckets >= 1 && n_buckets <= kMaxBuckets, kOp,
          ": n_buckets must be from 1 to ", kMaxBuckets, ", got ", n_buckets);
  check_bucket_range(kOp, buckets, n_buckets, mask);

  const auto options = buckets.options().dtype(at::kInt);
  SortedRounds sorted{
      at::empty({batch, heads, rounds, length}, options),
      at::empty({batch, heads, length, rounds}, options),
      at::empty({batch, heads, rounds, n_buckets + 1}, options)};
  const auto ids = buckets.contiguous();
  const auto real = mask.defined() ? mask.contiguous() : mask;
  const kernels::BucketSortArgs args{ids.const_data_ptr<uint16_t>(),
                                     mask_data(real),
                                     sorted.order.mutable_data_ptr<int32_t>(),
                                     sorted.place.mutable_data_ptr<int32_t>(),
                                     batch,
                                     heads,
                                     rounds,
                                     length,
                                     n_buckets,
                                     sorted.starts.mutable_data_ptr<int32_t>(),
                                     natural_rounds};
  if (buckets.is_cuda()) {
    const LaunchGuard launch(buckets);
    const auto workspace =
        workspace_of(kernels::cuda::bucket_sort_workspace(args), buckets);
    kernels::cuda::bucket_sort(args, intervals, workspace.mutable_data_ptr(),
                               launch.stream());
  } else {
    kernels::cpu::bucket_sort(args);
  }
  return sorted;
}

}  // namespace reformer
