#include "reformer/ops/lsh_buckets.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "reformer/base/errors.h"
#include "reformer/config/bucket_count.h"
#include "reformer/device/device.h"
#include "reformer/kernels/lsh_buckets.h"
#include "reformer/ops/checks.h"

namespace reformer {
namespace {

constexpr const char* kLshBuckets = "lsh_buckets";

void check(const at::Tensor& vectors, const at::Tensor& rotations,
           int64_t n_buckets) {
  check_vectors(kLshBuckets, "vectors", vectors);
  require_bucket_count(kLshBuckets, n_buckets);
  require(rotations.defined(), kLshBuckets,
          ": rotations must be a tensor, got none");
  require(rotations.dim() == 4 && rotations.scalar_type() == at::kFloat,
          kLshBuckets,
          ": rotations must be [heads, rounds, d_head, columns] float32, got ",
          rotations.sizes(), " ", at::toString(rotations.scalar_type()));
  require(rotations.size(1) >= 1, kLshBuckets,
          ": rounds must be at least 1, got ", rotations.size(1));
  const int64_t columns = rotation_columns(n_buckets);
  require(rotations.size(0) == vectors.size(1) &&
              rotations.size(2) == vectors.size(3) &&
              rotations.size(3) == columns,
          kLshBuckets, ": rotations must be [", vectors.size(1), ", rounds, ",
          vectors.size(3), ", ", columns, "] for these vectors and ", n_buckets,
          " buckets, got sizes ", rotations.sizes());
  require(rotations.device() == vectors.device(), kLshBuckets,
          ": rotations must be on the device of vectors, ",
          vectors.device().str(), ", got ", rotations.device().str());
}

template <class T>
kernels::LshBucketsArgs<T> arguments(const at::Tensor& vectors,
                                     const at::Tensor& rotations,
                                     int64_t n_buckets,
                                     const at::Tensor& buckets) {
  kernels::LshBucketsArgs<T> args{};
  args.vectors = rows_of<T>(vectors);
  args.rotations = rotations.const_data_ptr<float>();
  args.buckets = buckets.mutable_data_ptr<uint16_t>();
  args.batch = vectors.size(0);
  args.heads = vectors.size(1);
  args.rounds = rotations.size(1);
  args.length = vectors.size(2);
  args.d_head = vectors.size(3);
  args.columns = rotations.size(3);
  const auto factors = bucket_factors(n_buckets);
  args.n_factors = static_cast<int64_t>(factors.size());
  std::copy(factors.begin(), factors.end(), args.factors);
  return args;
}

}  // namespace

at::Tensor lsh_buckets(const at::Tensor& vectors, const at::Tensor& rotations,
                       int64_t n_buckets) {
  check(vectors, rotations, n_buckets);
  const auto rows = with_contiguous_rows(vectors);
  const auto dense_rotations = rotations.contiguous();
  auto buckets = at::empty(
      {vectors.size(0), vectors.size(1), rotations.size(1), vectors.size(2)},
      vectors.options().dtype(at::kUInt16));
  const auto run = [&]<class T>(const auto& hash) {
    hash(arguments<T>(rows, dense_rotations, n_buckets, buckets));
  };
  const auto on_cpu = [](const auto& args) { kernels::cpu::lsh_buckets(args); };
  const auto on_cuda = [&](const auto& args) {
    const LaunchGuard launch(rows);
    kernels::cuda::lsh_buckets(args, launch.stream());
  };
  switch (vectors.scalar_type()) {
    case at::kDouble:
      run.operator()<double>(on_cpu);
      break;
    case at::kBFloat16:
      run.operator()<kernels::Bf16>(on_cuda);
      break;
    default:
      vectors.is_cuda() ? run.operator()<float>(on_cuda)
                        : run.operator()<float>(on_cpu);
  }
  return buckets;  // [batch, heads, rounds, length]
}

}  // namespace reformer
