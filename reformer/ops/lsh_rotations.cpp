#include "reformer/ops/lsh_rotations.h"

#include <ATen/ops/empty.h>

#include "reformer/base/errors.h"
#include "reformer/config/bucket_count.h"
#include "reformer/device/device.h"
#include "reformer/kernels/lsh_rotations.h"
#include "reformer/ops/checks.h"

namespace reformer {

at::Tensor rotations_of_columns(const HashKey& key, int64_t heads,
                                int64_t rounds, int64_t d_head, int64_t columns,
                                at::Device device) {
  auto rotations = at::empty({heads, rounds, d_head, columns},
                             at::TensorOptions(device).dtype(at::kFloat));
  const kernels::LshRotationsArgs args{
      key, rotations.mutable_data_ptr<float>(), heads, rounds, d_head, columns};
  if (device.is_cuda()) {
    const LaunchGuard launch(device);
    kernels::cuda::lsh_rotations(args, launch.stream());
  } else {
    kernels::cpu::lsh_rotations(args);
  }
  return rotations;
}

at::Tensor lsh_rotations(const HashKey& key, int64_t heads, int64_t rounds,
                         int64_t d_head, int64_t n_buckets, at::Device device) {
  constexpr const char* kOp = "lsh_rotations";
  require(heads >= 1, kOp, ": heads must be at least 1, got ", heads);
  require(rounds >= 1, kOp, ": rounds must be at least 1, got ", rounds);
  require(d_head >= kMinHeadSize && d_head <= kMaxHeadSize, kOp,
          ": d_head must be from ", kMinHeadSize, " to ", kMaxHeadSize,
          ", got ", d_head);
  require_bucket_count(kOp, n_buckets);
  return rotations_of_columns(key, heads, rounds, d_head,
                              rotation_columns(n_buckets), device);
}

}  // namespace reformer
