#include "reformer/ops/natural_rounds.h"

#include <ATen/ops/zeros.h>

namespace reformer {

IntervalRounds natural_rounds(int64_t length, const WindowRule& rule,
                              bool causal, const at::Tensor& mask,
                              at::Device device) {
  const int64_t batch = mask.defined() ? mask.size(0) : 1;
  const auto one_bucket = at::zeros(
      {batch, 1, 1, length}, at::TensorOptions(device).dtype(at::kUInt16));
  const auto made =
      windowed_rounds(one_bucket, /*n_buckets=*/1, {rule}, causal, mask);
  return {made.sorted.order, made.sorted.place, made.interval};
}

}  // namespace reformer
