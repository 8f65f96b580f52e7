// What both passes of interval attention need of each row beforehand.
#pragma once

#include <cuda_runtime.h>

#include "reformer/kernels/interval_attention.h"

namespace reformer::kernels::cuda {

// scales [batch, heads, length], written: factor / |q|, 0 where |q| is at most
// kSmallestKeyNorm.
void inverse_norms(const IntervalAttentionArgs<__nv_bfloat16>& args,
                   float factor, float* scales, cudaStream_t stream);

// statistics [batch, heads, length, 2], written: log2 of the denominator of
// the softmax over 2^(score log2(e)), +inf for a lone token, and
// d_output . output.
void row_statistics(const IntervalAttentionGradArgs<__nv_bfloat16>& args,
                    float2* statistics, cudaStream_t stream);

}  // namespace reformer::kernels::cuda
