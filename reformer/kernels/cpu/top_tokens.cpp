#include "reformer/kernels/top_tokens.h"

#include "reformer/kernels/cpu/dispatch.h"

namespace reformer::kernels::cpu {

REFORMER_DECLARE_SIMD_KERNEL(top_tokens, TopTokensArgs)

void top_tokens(const TopTokensArgs<float>& args) {
  dispatch(args, plain::top_tokens<float>, avx2::top_tokens<float>,
           avx512::top_tokens<float>);
}

void top_tokens(const TopTokensArgs<double>& args) { plain::top_tokens(args); }

}  // namespace reformer::kernels::cpu
