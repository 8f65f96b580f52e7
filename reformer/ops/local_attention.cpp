#include "reformer/ops/local_attention.h"

#include "reformer/base/errors.h"
#include "reformer/ops/checks.h"
#include "reformer/ops/natural_rounds.h"

namespace reformer {

at::Tensor local_attention(const at::Tensor& qk, const at::Tensor& v,
                           const LocalConfig& config, const at::Tensor& mask,
                           int64_t successor_heads) {
  constexpr const char* kOp = "local_attention";
  check_vectors(kOp, "qk", qk);
  check_like(kOp, "v", v, "qk", qk);
  check_mask(kOp, mask, qk.device(), qk.size(0), qk.size(2));
  check_successor_heads(kOp, successor_heads, qk);
  require(config.chunk_length >= 1, kOp,
          ": chunk_length must be at least 1, got ", config.chunk_length);
  const auto rounds =
      natural_rounds(qk.size(2), {config.window, config.chunk_length},
                     config.causal, mask, qk.device());
  return interval_attention_unchecked(qk, {}, v, rounds, mask, successor_heads)
      .output;
}

at::Tensor local_attention_separate_qk(const at::Tensor& q, const at::Tensor& k,
                                       const at::Tensor& v,
                                       const LocalConfig& config,
                                       const at::Tensor& mask) {
  constexpr const char* kOp = "local_attention_separate_qk";
  check_vectors(kOp, "q", q);
  check_like(kOp, "k", k, "q", q);
  check_like(kOp, "v", v, "q", q);
  check_mask(kOp, mask, q.device(), q.size(0), q.size(2));
  require(config.chunk_length >= 1, kOp,
          ": chunk_length must be at least 1, got ", config.chunk_length);
  const auto rounds =
      natural_rounds(q.size(2), {config.window, config.chunk_length},
                     config.causal, mask, q.device());
  // Intervals of causal rounds end before their own place; here self counts.
  if (config.causal && mask.defined()) {
    rounds.interval.select(4, 1).add_(mask.unsqueeze(1).unsqueeze(-1));
  } else if (config.causal) {
    rounds.interval.select(4, 1).add_(1);
  }
  return interval_attention_unchecked(q, k, v, rounds, mask).output;
}

}  // namespace reformer
