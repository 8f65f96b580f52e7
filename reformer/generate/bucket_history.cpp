#include "reformer/generate/bucket_history.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/device/device.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kOp = "bucket_history";

int64_t all_rounds(const BucketShape& shape) {
  return shape.batch * shape.heads * shape.rounds;
}

void check(const at::Tensor& buckets, const BucketShape& shape) {
  check_bucket_shape(kOp, buckets);
  require(buckets.size(0) == shape.batch && buckets.size(1) == shape.heads &&
              buckets.size(2) == shape.rounds,
          kOp, ": buckets must be [", shape.batch, ", ", shape.heads, ", ",
          shape.rounds, ", length], got sizes ", buckets.sizes());
}

}  // namespace

void BucketHistory::Members::append(int64_t round, int64_t bucket,
                                    int64_t position) {
  auto& members = members_[index(round, bucket)];
  if (static_cast<int64_t>(members.size()) == 2 * window_) {
    members.erase(members.begin(), members.begin() + window_);
  }
  members.push_back(static_cast<int32_t>(position));
}

PositionList BucketHistory::Members::last(int64_t round, int64_t bucket) const {
  const auto& members = members_[index(round, bucket)];
  const auto size = static_cast<int64_t>(members.size());
  const int64_t skipped = size > window_ ? size - window_ : 0;
  return {members.data() + skipped, size - skipped};
}

std::size_t BucketHistory::Members::index(int64_t round, int64_t bucket) const {
  const int64_t at = round * n_buckets_ + bucket;
  require(bucket >= 0 && bucket < n_buckets_ && at >= 0 &&
              at < static_cast<int64_t>(members_.size()),
          kOp, ": there is no bucket ", bucket, " of round ", round, ", only ",
          n_buckets_, " of each round");
  return static_cast<std::size_t>(at);
}

BucketHistory::BucketHistory(const BucketShape& shape, at::Device device)
    : shape_(shape) {
  if (shape.rounds == 0) return;
  if (device.is_cpu()) {
    lists_.assign(static_cast<std::size_t>(shape.batch),
                  Members(per_row(), shape));
    return;
  }
  const auto options = at::TensorOptions(device).dtype(at::kInt);
  members_ =
      at::empty({all_rounds(shape), shape.n_buckets, shape.window}, options);
  counts_ = at::zeros({all_rounds(shape), shape.n_buckets}, options);
}

void BucketHistory::append(const at::Tensor& buckets,
                           const std::vector<int64_t>& first,
                           const std::vector<int64_t>& counts) {
  if (shape_.rounds == 0) return;
  check(buckets, shape_);
  check_bucket_range(kOp, buckets, shape_.n_buckets, /*mask=*/{});
  const auto ids = buckets.contiguous();
  const int64_t length = ids.size(3);
  const uint16_t* bucket = ids.const_data_ptr<uint16_t>();
  if (members_.defined()) {
    require(!filled_ && std::all_of(first.begin(), first.end(),
                                    [](int64_t at) { return at == 0; }),
            kOp, ": on a GPU texts are appended once, from their beginning on");
    filled_ = true;
    const auto on_device = copied_to(counts, ids.device());
    const LaunchGuard launch(ids);
    return kernels::cuda::fill_bucket_history(
        {bucket, on_device.const_data_ptr<int64_t>(), history(), shape_.batch,
         shape_.heads, length},
        launch.stream());
  }
  for (int64_t round = 0; round < all_rounds(shape_); ++round) {
    interruption_point();
    const int64_t row = round / per_row();
    for (int64_t i = 0; i < counts[row]; ++i) {
      lists_[row].append(round % per_row(), bucket[round * length + i],
                         first[row] + i);
    }
  }
}

void BucketHistory::take_row(int64_t row, BucketHistory& one) {
  if (shape_.rounds == 0) return;
  require(one.shape_.heads == shape_.heads &&
              one.shape_.rounds == shape_.rounds &&
              one.shape_.n_buckets == shape_.n_buckets &&
              one.shape_.window == shape_.window,
          kOp, ": a row is taken of a history of the same shape");
  if (members_.defined()) {
    of_row(members_, row).copy_(one.members_);
    of_row(counts_, row).copy_(one.counts_);
    return;
  }
  lists_.at(static_cast<std::size_t>(row)) = std::move(one.lists_.at(0));
}

void BucketHistory::move_row(int64_t from, int64_t to) {
  if (shape_.rounds == 0 || from == to) return;
  if (members_.defined()) {
    of_row(members_, to).copy_(of_row(members_, from));
    of_row(counts_, to).copy_(of_row(counts_, from));
  } else {
    lists_.at(static_cast<std::size_t>(to)) =
        std::move(lists_.at(static_cast<std::size_t>(from)));
  }
  clear_row(from);
}

void BucketHistory::clear_row(int64_t row) {
  if (shape_.rounds == 0) return;
  if (members_.defined()) {
    of_row(counts_, row).zero_();
    return;
  }
  lists_.at(static_cast<std::size_t>(row)) = Members(0, shape_);
}

std::vector<PositionList> BucketHistory::last(const at::Tensor& buckets) const {
  std::vector<PositionList> lists;
  if (shape_.rounds == 0) return lists;
  check(buckets, shape_);
  const auto ids = buckets.contiguous();
  const uint16_t* bucket = ids.const_data_ptr<uint16_t>();
  lists.reserve(ids.numel());
  for (int64_t round = 0; round < ids.numel(); ++round) {
    lists.push_back(
        lists_[round / per_row()].last(round % per_row(), bucket[round]));
  }
  return lists;
}

kernels::BucketHistory BucketHistory::history() const {
  if (!members_.defined()) return {};
  return {members_.mutable_data_ptr<int32_t>(),
          counts_.mutable_data_ptr<int32_t>(),
          shape_.rounds,
          shape_.n_buckets,
          shape_.window,
          shape_.together};
}

}  // namespace reformer
