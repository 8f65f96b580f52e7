#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "python/csrc/operators.h"

namespace reformer::python {
namespace {

// Types that no kernel has are computed in float32, as users of PyTorch expect
// of half precision; what is wrong otherwise is for the checks to say.
bool widens(const Tensor& x) {
  const auto type = x.scalar_type();
  return type == at::kHalf || (type == at::kBFloat16 && !x.is_cuda());
}

Tensor widened(const Tensor& x) { return widens(x) ? x.to(at::kFloat) : x; }

Tensor narrowed(const Tensor& output, const Tensor& like) {
  return widens(like) ? output.to(like.scalar_type()) : output;
}

Tensor attend(const Tensor& qk, const Tensor& v, const Rounds& rounds,
              const MaybeTensor& mask, int64_t successor_heads) {
  return std::get<0>(call_forward(qk, std::nullopt, v, rounds, mask,
                                  successor_heads, /*trusted=*/true));
}

Tensor call_buckets(const Tensor& qk, int64_t rounds, int64_t chunk_length,
                    int64_t n_buckets, c10::SymInt seed) {
  static const auto op =
      operator_named<decltype(lsh_buckets)>("reformer::lsh_buckets");
  return op.call(qk, rounds, chunk_length, n_buckets, seed);
}

}  // namespace

Tensor lsh_attention(const Tensor& qk, const Tensor& v, int64_t rounds,
                     int64_t chunk_length, int64_t n_buckets,
                     int64_t local_window, std::string window, bool causal,
                     int64_t successor_heads, c10::SymInt seed,
                     const MaybeTensor& mask, const MaybeTensor& buckets) {
  static const auto rounds_of =
      operator_named<decltype(lsh_rounds)>("reformer::lsh_rounds");
  const auto wide_qk = widened(qk);
  const auto used = buckets ? *buckets
                            : call_buckets(wide_qk.detach(), rounds,
                                           chunk_length, n_buckets, seed);
  return narrowed(attend(wide_qk, widened(v),
                         rounds_of.call(used, mask, chunk_length, n_buckets,
                                        local_window, window, causal),
                         mask, successor_heads),
                  qk);
}

Tensor local_attention(const Tensor& qk, const Tensor& v, int64_t chunk_length,
                       std::string window, bool causal, int64_t successor_heads,
                       const MaybeTensor& mask) {
  static const auto rounds_of =
      operator_named<decltype(local_rounds)>("reformer::local_rounds");
  const auto wide_qk = widened(qk);
  return narrowed(attend(wide_qk, widened(v),
                         rounds_of.call(wide_qk.detach(), mask, chunk_length,
                                        window, causal),
                         mask, successor_heads),
                  qk);
}

std::tuple<Tensor, Tensor> interval_attention(
    const Tensor& q, const MaybeTensor& k, const Tensor& v, const Tensor& order,
    const Tensor& place, const Tensor& interval, const MaybeTensor& mask,
    int64_t successor_heads) {
  const auto [output, lse, softmax] = call_forward(
      widened(q), k ? MaybeTensor(widened(*k)) : k, widened(v),
      {order, place, interval}, mask, successor_heads, /*trusted=*/false);
  return {narrowed(output, q), lse};
}

TORCH_LIBRARY_IMPL(reformer, CompositeImplicitAutograd, m) {
  m.impl("lsh_attention", lsh_attention);
  m.impl("local_attention", local_attention);
  m.impl("interval_attention", interval_attention);
}

}  // namespace reformer::python
