#include "reformer/ops/natural_rounds.h"

#include <ATen/ops/zeros.h>

namespace reformer {

IntervalRounds natural_rounds(int64_t length, const WindowRule& rule,
                              bool causal, const at::Tensor& mask) {
  const int64_t batch = mask.defined() ? mask.size(0) : 1;
  const auto one_bucket = at::zeros({batch, 1, 1, length}, at::kUInt16);
  const auto sorted = bucket_sort(one_bucket, /*n_buckets=*/1, mask);
  return {sorted.order, sorted.place,
          lsh_intervals(one_bucket, sorted, {rule}, causal, mask)};
}

}  // namespace reformer
