#include "reformer/ops/lsh_intervals.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "reformer/core/errors.h"
#include "reformer/ops/checks.h"

namespace reformer {

at::Tensor lsh_intervals(const at::Tensor& buckets, const SortedRounds& sorted,
                         const std::vector<WindowRule>& rules, bool causal,
                         const at::Tensor& mask) {
  constexpr const char* kOp = "lsh_intervals";
  check_bucket_shape(kOp, buckets);
  const int64_t batch = buckets.size(0);
  const int64_t heads = buckets.size(1);
  const int64_t rounds = buckets.size(2);
  const int64_t length = buckets.size(3);
  check_mask(kOp, mask, batch, length);
  require(sorted.order.defined(), kOp, ": order must be a tensor, got none");
  require(sorted.order.scalar_type() == at::kInt &&
              sorted.order.sizes() == buckets.sizes(),
          kOp, ": order must be int32 with the sizes of buckets, ",
          buckets.sizes(), ", got ", at::toString(sorted.order.scalar_type()),
          " ", sorted.order.sizes());
  require(static_cast<int64_t>(rules.size()) == rounds, kOp,
          ": one rule for each of ", rounds, " rounds is required, got ",
          rules.size());
  auto within = rules;
  for (auto& rule : within) {
    require(rule.length >= 1, kOp, ": a window must be at least 1, got ",
            rule.length);
    rule.length = std::min(rule.length, length);
  }

  auto interval = at::empty({batch, heads, length, rounds, 2}, at::kInt);
  const auto ids = buckets.contiguous();
  const auto order = sorted.order.contiguous();
  const auto real = mask.defined() ? mask.contiguous() : mask;
  kernels::cpu::lsh_intervals(
      {ids.const_data_ptr<uint16_t>(), order.const_data_ptr<int32_t>(),
       mask_data(real), within.data(), interval.mutable_data_ptr<int32_t>(),
       batch, heads, rounds, length, causal});
  return interval;
}

}  // namespace reformer
