#include "reformer/attention.h"

#include "reformer/ops/full_attention.h"
#include "reformer/ops/local_attention.h"
#include "reformer/ops/lsh_attention.h"

namespace reformer {
namespace {

Window window_of(AttentionWindow window) {
  return window == AttentionWindow::kChunk ? Window::kChunk : Window::kTrailing;
}

}  // namespace

at::Tensor lsh_attention(const at::Tensor& qk, const at::Tensor& v,
                         const LshOptions& options, const at::Tensor& mask) {
  const LshConfig config{.rounds = options.rounds,
                         .chunk_length = options.chunk_length,
                         .n_buckets = options.n_buckets,
                         .local_window = options.local_window,
                         .window = window_of(options.window),
                         .causal = options.causal};
  return lsh_attention(qk, v, config, HashKey{.seed = options.seed}, mask,
                       options.successor_heads);
}

at::Tensor local_attention(const at::Tensor& qk, const at::Tensor& v,
                           const LocalOptions& options,
                           const at::Tensor& mask) {
  const LocalConfig config{.chunk_length = options.chunk_length,
                           .window = window_of(options.window),
                           .causal = options.causal};
  return local_attention(qk, v, config, mask, options.successor_heads);
}

at::Tensor full_attention(const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const FullOptions& options,
                          const at::Tensor& mask) {
  return full_attention(q, k, v, options.causal, mask,
                        options.deterministic
                            ? GradientSums::kDeterministic
                            : GradientSums::kNondeterministic);
}

at::Tensor full_shared_qk_attention(const at::Tensor& qk, const at::Tensor& v,
                                    const SharedQkOptions& options,
                                    const at::Tensor& mask) {
  return full_shared_qk_attention(qk, v, options.causal, mask,
                                  options.successor_heads);
}

}  // namespace reformer
