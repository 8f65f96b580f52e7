#include "reformer/kernels/decode_attention.h"

#include "reformer/kernels/cpu/dispatch.h"

namespace reformer::kernels::cpu {

REFORMER_DECLARE_SIMD_KERNEL(decode_attention, DecodeAttentionArgs)

void decode_attention(const DecodeAttentionArgs<float>& args) {
  dispatch(args, plain::decode_attention<float>, avx2::decode_attention<float>,
           avx512::decode_attention<float>);
}

void decode_attention(const DecodeAttentionArgs<double>& args) {
  plain::decode_attention(args);
}

}  // namespace reformer::kernels::cpu
