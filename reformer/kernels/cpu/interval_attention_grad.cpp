#include "reformer/kernels/interval_attention.h"

#include "reformer/kernels/cpu/dispatch.h"

namespace reformer::kernels::cpu {

REFORMER_DECLARE_SIMD_KERNEL(interval_attention_grad, IntervalAttentionGradArgs)

void interval_attention_grad(const IntervalAttentionGradArgs<float>& args) {
  dispatch(args, plain::interval_attention_grad<float>,
           avx2::interval_attention_grad<float>,
           avx512::interval_attention_grad<float>);
}

void interval_attention_grad(const IntervalAttentionGradArgs<double>& args) {
  plain::interval_attention_grad(args);
}

}  // namespace reformer::kernels::cpu
