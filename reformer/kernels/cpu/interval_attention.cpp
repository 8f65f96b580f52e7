#include "reformer/kernels/interval_attention.h"

#include "reformer/kernels/cpu/dispatch.h"

namespace reformer::kernels::cpu {

REFORMER_DECLARE_SIMD_KERNEL(interval_attention, IntervalAttentionArgs)

void interval_attention(const IntervalAttentionArgs<float>& args) {
  dispatch(args, plain::interval_attention<float>,
           avx2::interval_attention<float>, avx512::interval_attention<float>);
}

void interval_attention(const IntervalAttentionArgs<double>& args) {
  plain::interval_attention(args);
}

}  // namespace reformer::kernels::cpu
