#include "reformer/ops/lsh_intervals.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kLshIntervals = "lsh_intervals";

std::vector<WindowRule> checked_rules(std::vector<WindowRule> rules,
                                      int64_t length) {
  for (auto& rule : rules) {
    require(rule.length >= 1, kLshIntervals,
            ": a window must be at least 1, got ", rule.length);
    rule.length = std::min(rule.length, length);
  }
  return rules;
}

at::Tensor empty_intervals(const at::Tensor& buckets, int64_t rounds) {
  return at::empty(
      {buckets.size(0), buckets.size(1), buckets.size(3), rounds, 2},
      buckets.options().dtype(at::kInt));
}

}  // namespace

at::Tensor lsh_intervals(const at::Tensor& buckets, const SortedRounds& sorted,
                         const std::vector<WindowRule>& rules, bool causal,
                         const at::Tensor& mask) {
  check_bucket_shape(kLshIntervals, buckets);
  const int64_t batch = buckets.size(0);
  const int64_t heads = buckets.size(1);
  const int64_t rounds = static_cast<int64_t>(rules.size());
  const int64_t length = buckets.size(3);
  check_mask(kLshIntervals, mask, buckets.device(), batch, length);
  require(rounds >= buckets.size(2), kLshIntervals, ": one rule for each of ",
          buckets.size(2), " rounds is required, got ", rounds);
  require(sorted.order.defined(), kLshIntervals,
          ": order must be a tensor, got none");
  require(sorted.order.scalar_type() == at::kInt &&
              sorted.order.sizes() ==
                  at::IntArrayRef({batch, heads, rounds, length}),
          kLshIntervals, ": order must be int32 [", batch, ", ", heads, ", ",
          rounds, ", ", length, "] for these buckets and rules, got ",
          at::toString(sorted.order.scalar_type()), " ", sorted.order.sizes());
  const auto within = checked_rules(rules, length);
  auto interval = empty_intervals(buckets, rounds);
  const auto ids = buckets.contiguous();
  const auto order = sorted.order.contiguous();
  const auto real = mask.defined() ? mask.contiguous() : mask;
  kernels::LshIntervalsArgs args{ids.const_data_ptr<uint16_t>(),
                                 order.const_data_ptr<int32_t>(),
                                 mask_data(real),
                                 within.data(),
                                 interval.mutable_data_ptr<int32_t>(),
                                 batch,
                                 heads,
                                 rounds,
                                 length,
                                 causal,
                                 /*natural_rounds=*/rounds - buckets.size(2)};
  if (buckets.is_cuda()) {
    for (const auto* x : {&sorted.place, &sorted.starts}) {
      require(x->defined() && x->scalar_type() == at::kInt && x->is_cuda(),
              kLshIntervals,
              ": on CUDA all that bucket_sort returns is required, int32");
    }
    require(sorted.place.numel() == batch * heads * rounds * length &&
                sorted.starts.dim() == 4 && sorted.starts.size(0) == batch &&
                sorted.starts.size(1) == heads && sorted.starts.size(3) >= 2,
            kLshIntervals,
            ": place and starts must be of these buckets, got sizes ",
            sorted.place.sizes(), " and ", sorted.starts.sizes());
    const auto place = sorted.place.contiguous();
    const auto starts = sorted.starts.contiguous();
    args.place = place.const_data_ptr<int32_t>();
    args.starts = starts.const_data_ptr<int32_t>();
    args.n_buckets = starts.size(3) - 1;
    const LaunchGuard launch(buckets);
    kernels::cuda::lsh_intervals(args, launch.stream());
  } else {
    kernels::cpu::lsh_intervals(args);
  }
  return interval;
}

WindowedRounds windowed_rounds(const at::Tensor& buckets, int64_t n_buckets,
                               const std::vector<WindowRule>& rules,
                               bool causal, const at::Tensor& mask) {
  check_bucket_shape(kLshIntervals, buckets);
  const int64_t rounds = static_cast<int64_t>(rules.size());
  const int64_t natural_rounds = rounds - buckets.size(2);
  require(natural_rounds >= 0, kLshIntervals, ": one rule for each of ",
          buckets.size(2), " rounds is required, got ", rounds);
  if (!buckets.is_cuda()) {
    const auto sorted = bucket_sort(buckets, n_buckets, mask, natural_rounds);
    return {sorted, lsh_intervals(buckets, sorted, rules, causal, mask)};
  }
  const auto within = checked_rules(rules, buckets.size(3));
  const auto interval = empty_intervals(buckets, rounds);
  kernels::LshIntervalsArgs args{};
  args.rules = within.data();
  args.interval = interval.mutable_data_ptr<int32_t>();
  args.rounds = rounds;
  args.length = buckets.size(3);
  args.causal = causal;
  return {bucket_sort(buckets, n_buckets, mask, natural_rounds, &args),
          interval};
}

}  // namespace reformer
