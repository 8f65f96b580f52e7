#include "reformer/ops/interval_statistics.h"

#include "reformer/device/device.h"
#include "reformer/kernels/interval_statistics.h"
#include "reformer/ops/checks.h"
#include "reformer/ops/lsh_attention.h"

namespace reformer {
namespace {

kernels::IntervalStatistics counted_on_cuda(
    const kernels::IntervalStatisticsArgs& args, const at::Tensor& buckets) {
  const auto sums = workspace_of(sizeof(kernels::IntervalStatistics), buckets);
  const LaunchGuard launch(buckets);
  kernels::cuda::interval_statistics(
      args, static_cast<kernels::IntervalStatistics*>(sums.mutable_data_ptr()),
      launch.stream());
  const auto copied = sums.cpu();  // waits for the device
  return *static_cast<const kernels::IntervalStatistics*>(
      copied.const_data_ptr());
}

}  // namespace

LshStatistics lsh_statistics(const at::Tensor& buckets, const LshConfig& config,
                             const at::Tensor& mask) {
  constexpr const char* kOp = "lsh_statistics";
  check_bucket_shape(kOp, buckets);
  check_mask(kOp, mask, buckets.device(), buckets.size(0), buckets.size(3));
  const auto rounds = lsh_rounds(buckets, config, mask);
  const auto ids = buckets.contiguous();
  const auto real = mask.defined() ? mask.contiguous() : mask;
  kernels::IntervalStatisticsArgs args{};
  args.rounds = view_of(rounds);
  args.buckets = ids.const_data_ptr<uint16_t>();
  args.mask = mask_data(real);
  args.batch = ids.size(0);
  args.heads = ids.size(1);
  args.length = ids.size(3);
  args.bucket_rounds = ids.size(2);
  args.tile_rows = kernels::cpu::kTileRows;
  args.causal = config.causal;
  const auto sums = ids.is_cuda() ? counted_on_cuda(args, ids)
                                  : kernels::cpu::interval_statistics(args);

  const auto ratio = [](int64_t part, int64_t whole) {
    return whole == 0 ? 0.0 : double(part) / double(whole);
  };
  return {ratio(sums.attended, sums.queries),
          ratio(sums.computed, sums.queries),
          ratio(sums.overflow, sums.in_bucket), sums.in_bucket, sums.overflow};
}

}  // namespace reformer
