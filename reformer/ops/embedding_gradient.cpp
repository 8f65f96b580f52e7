#include "reformer/ops/embedding_gradient.h"

#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sort.h>

#include <limits>

#include "reformer/base/errors.h"
#include "reformer/config/bucket_count.h"
#include "reformer/device/device.h"
#include "reformer/kernels/embedding_gradient.h"
#include "reformer/ops/bucket_sort.h"

namespace reformer {
namespace {

// The numbers of the lookups, [count] int32, by (index, number).
at::Tensor order_of(const at::Tensor& indices, int64_t rows) {
  if (rows <= kMaxBuckets) {
    const auto buckets = indices.to(at::kUInt16).view({1, 1, 1, -1});
    return bucket_sort(buckets, rows).order.flatten();
  }
  const auto sorted = at::sort(indices, /*stable=*/true, /*dim=*/0,
                               /*descending=*/false);
  return std::get<1>(sorted).to(at::kInt);
}

void add_on_device(const at::Tensor& sum, const at::Tensor& indices,
                   const at::Tensor& d, double scale) {
  const auto order = order_of(indices, sum.size(0));
  const LaunchGuard launch(d);
  const auto partial = at::empty(
      {kernels::cuda::embedding_gradient_partials(d.size(0), d.size(1))},
      d.options());
  kernels::cuda::embedding_gradient(
      {indices.const_data_ptr<int64_t>(), order.const_data_ptr<int32_t>(),
       d.const_data_ptr<float>(), sum.mutable_data_ptr<float>(),
       partial.mutable_data_ptr<float>(), d.size(0), d.size(1), d.stride(0),
       static_cast<float>(scale)},
      launch.stream());
}

}  // namespace

void add_embedding_gradient(const at::Tensor& sum, const at::Tensor& indices,
                            const at::Tensor& d, double scale) {
  constexpr const char* kOp = "add_embedding_gradient";
  require(sum.dim() == 2 && d.dim() == 2 && d.size(1) == sum.size(1) &&
              indices.dim() == 1 && indices.size(0) == d.size(0),
          kOp, ": sum [rows, width], indices [count] and d [count, width] are ",
          "required, got ", sum.sizes(), ", ", indices.sizes(), " and ",
          d.sizes());
  require(indices.scalar_type() == at::kLong &&
              d.scalar_type() == sum.scalar_type(),
          kOp, ": indices must be int64 and d of sum's type, ",
          at::toString(sum.scalar_type()), ", got ",
          at::toString(indices.scalar_type()), " and ",
          at::toString(d.scalar_type()));
  require(indices.device() == d.device() && sum.device() == d.device() &&
              d.size(0) <= std::numeric_limits<int32_t>::max(),
          kOp, ": one device and fewer than 2^31 lookups are required, got ",
          sum.device(), ", ", indices.device(), " and ", d.device(), ", ",
          d.size(0), " lookups");
  const auto dense = indices.contiguous();
  if (d.is_cpu()) {
    sum.add_(at::embedding_dense_backward(d.contiguous(), dense, sum.size(0),
                                          /*padding_idx=*/-1,
                                          /*scale_grad_by_freq=*/false),
             scale);
    return;
  }
  require(d.scalar_type() == at::kFloat && sum.is_contiguous(), kOp,
          ": on a GPU sum must be contiguous float32, got ",
          at::toString(sum.scalar_type()), " of strides ", sum.strides());
  add_on_device(sum, dense, d.stride(1) == 1 ? d : d.contiguous(), scale);
}

}  // namespace reformer
