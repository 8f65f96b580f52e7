#include "reformer/generate/attend_next.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kOp = "attend_next";

PositionRange range_of(const EarlierPositions& earlier, int64_t position) {
  return {earlier.begin(position), position + (earlier.itself ? 1 : 0)};
}

void check_position(const NextPosition& next, const KeyValueCache& cache) {
  require(next.position.defined() && next.position.scalar_type() == at::kLong &&
              next.position.numel() == cache.batch() &&
              next.position.device() == next.q.device() &&
              next.position.is_contiguous(),
          kOp, ": position must be [batch] int64 on the device of q");
}

at::Tensor attend_on_cpu(const NextPosition& next,
                         const EarlierPositions& earlier, KeyValueCache& cache,
                         BucketHistory& history) {
  check_position(next, cache);
  const int64_t* given = next.position.const_data_ptr<int64_t>();
  const std::vector<int64_t> position(given, given + cache.batch());
  AttendedPositions attended;
  for (int64_t row = 0; row < cache.batch(); ++row) {
    require(position[row] + 1 == cache.lengths()[row], kOp,
            ": the cache must have been extended by the position ",
            position[row], ", it has ", cache.lengths()[row]);
    attended.ranges.push_back(range_of(earlier, position[row]));
  }
  attended.lists = history.last(next.buckets);
  attended.lists_together = history.shape().together;
  const std::vector<int64_t> one_each(cache.batch(), 1);
  cache.write(next.k.defined() ? next.k : next.q, next.v, one_each);
  const auto output = attend_next(next.q, cache, attended);
  history.append(next.buckets, position, one_each);  // ends the lists above
  return output;
}

void check(const NextPosition& next, const EarlierPositions& earlier,
           const KeyValueCache& cache, const BucketHistory& history) {
  const auto& config = cache.config();
  const int64_t farthest =
      earlier.last + std::max<int64_t>(earlier.chunk - 1, 0);
  require(config.reach == 0 || farthest < config.reach, kOp,
          ": the cache reaches ", config.reach,
          " positions, the newest included, not ", farthest, " before it");
  check_vectors(kOp, "q", next.q);
  require(next.q.sizes() == at::IntArrayRef({cache.batch(), config.heads, 1,
                                             config.d_head}) &&
              next.q.scalar_type() == config.type,
          kOp, ": q must be ", at::toString(config.type), " [", cache.batch(),
          ", ", config.heads, ", 1, ", config.d_head, "], got ",
          at::toString(next.q.scalar_type()), " ", next.q.sizes());
  check_like(kOp, "v", next.v, "q", next.q);
  if (next.k.defined()) check_like(kOp, "k", next.k, "q", next.q);
  const auto& shape = history.shape();
  require(config.rounds == shape.rounds, kOp, ": the cache keeps buckets of ",
          config.rounds, " rounds, the history of ", shape.rounds);
  check_position(next, cache);
  if (shape.rounds == 0) return;
  check_bucket_shape(kOp, next.buckets);
  require(next.buckets.sizes() ==
              at::IntArrayRef({shape.batch, shape.heads, shape.rounds, 1}),
          kOp, ": buckets must be [", shape.batch, ", ", shape.heads, ", ",
          shape.rounds, ", 1], got sizes ", next.buckets.sizes());
}

template <class T>
void run(const NextPosition& next, const EarlierPositions& earlier,
         const KeyValueCache& cache, const BucketHistory& history,
         const at::Tensor& output) {
  const auto q = with_contiguous_rows(next.q);
  const auto k = next.k.defined() ? with_contiguous_rows(next.k) : q;
  const auto v = with_contiguous_rows(next.v);
  const auto buckets =
      next.buckets.defined() ? next.buckets.contiguous() : next.buckets;
  kernels::cuda::AttendNextArgs<T> args{};
  args.q = rows_of<T>(q);
  args.k = rows_of<T>(k);
  args.v = rows_of<T>(v);
  if (buckets.defined()) args.buckets = buckets.const_data_ptr<uint16_t>();
  args.position = next.position.const_data_ptr<int64_t>();
  args.pages = cache.pages<T>();
  args.history = history.history();
  args.earlier = earlier;
  args.longest = cache.room();
  args.unit_keys = cache.shared_qk();
  args.successor_heads = cache.config().successor_heads;
  args.scale = cache.shared_qk() ? 1 : 1 / std::sqrt(double(cache.d_head()));
  args.output = mutable_rows_of<T>(output);
  args.arrivals = cache.arrivals().mutable_data_ptr<int32_t>();
  args.batch = cache.batch();
  args.heads = cache.heads();
  args.d_head = cache.d_head();
  const LaunchGuard launch(q);
  const auto workspace =
      workspace_of(kernels::cuda::attend_next_workspace(args), q);
  kernels::cuda::attend_next(args, workspace.mutable_data_ptr(),
                             launch.stream());
}

}  // namespace

at::Tensor attend_next(const NextPosition& next,
                       const EarlierPositions& earlier, KeyValueCache& cache,
                       BucketHistory& history) {
  if (cache.config().device.is_cpu()) {
    return attend_on_cpu(next, earlier, cache, history);
  }
  check(next, earlier, cache, history);
  const auto output = at::empty(next.q.sizes(), next.q.options());
  cache.type() == at::kBFloat16
      ? run<kernels::Bf16>(next, earlier, cache, history, output)
      : run<float>(next, earlier, cache, history, output);
  return output;
}

}  // namespace reformer
