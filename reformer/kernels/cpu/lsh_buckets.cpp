#include "reformer/kernels/lsh_buckets.h"

#include "reformer/kernels/cpu/dispatch.h"

namespace reformer::kernels::cpu {

REFORMER_DECLARE_SIMD_KERNEL(lsh_buckets, LshBucketsArgs)

void lsh_buckets(const LshBucketsArgs<float>& args) {
  dispatch(args, plain::lsh_buckets<float>, avx2::lsh_buckets<float>,
           avx512::lsh_buckets<float>);
}

void lsh_buckets(const LshBucketsArgs<double>& args) {
  plain::lsh_buckets(args);
}

}  // namespace reformer::kernels::cpu
