// The library's attention as operators of PyTorch: torch.ops.reformer.*.
//
// The one differentiable operator is interval_attention_forward; everything
// else chooses rounds for it, as in C++. What users call (lsh_attention,
// local_attention, interval_attention) is composed of these, so that
// torch.compile and torch.export see through it down to operators that have
// fake kernels (python/reformer/_fake.py).
//
// schemas.cpp names them for PyTorch; kernels.cpp computes, autograd.cpp
// differentiates, attention.cpp composes, autocast.cpp casts.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/SymInt.h>

#include <optional>
#include <string>
#include <tuple>

namespace reformer::python {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using Rounds = std::tuple<Tensor, Tensor, Tensor>;   // IntervalRounds
using Results = std::tuple<Tensor, Tensor, Tensor>;  // AttentionResult

// --- Kernels: tensors with elements, no autograd; empty ones, too ------------

Tensor lsh_buckets(const Tensor& qk, int64_t rounds, int64_t chunk_length,
                   int64_t n_buckets, c10::SymInt seed);

Rounds lsh_rounds(const Tensor& buckets, const MaybeTensor& mask,
                  int64_t chunk_length, int64_t n_buckets, int64_t local_window,
                  std::string window, bool causal);

Rounds local_rounds(const Tensor& qk, const MaybeTensor& mask,
                    int64_t chunk_length, std::string window, bool causal);

// trusted: the rounds are the library's own, and not looked at.
Results interval_attention_forward(const Tensor& q, const MaybeTensor& k,
                                   const Tensor& v, const Tensor& order,
                                   const Tensor& place, const Tensor& interval,
                                   const MaybeTensor& mask,
                                   int64_t successor_heads, bool trusted);

// The gradient of k is empty where k is shared with q.
std::tuple<Tensor, Tensor, Tensor> interval_attention_backward(
    const Tensor& d_output, const Tensor& q, const MaybeTensor& k,
    const Tensor& v, const Tensor& order, const Tensor& place,
    const Tensor& interval, const MaybeTensor& mask, const Tensor& output,
    const Tensor& lse, const Tensor& softmax, int64_t successor_heads);

// --- What users call ---------------------------------------------------------

Tensor lsh_attention(const Tensor& qk, const Tensor& v, int64_t rounds,
                     int64_t chunk_length, int64_t n_buckets,
                     int64_t local_window, std::string window, bool causal,
                     int64_t successor_heads, c10::SymInt seed,
                     const MaybeTensor& mask, const MaybeTensor& buckets);

Tensor local_attention(const Tensor& qk, const Tensor& v, int64_t chunk_length,
                       std::string window, bool causal, int64_t successor_heads,
                       const MaybeTensor& mask);

std::tuple<Tensor, Tensor> interval_attention(
    const Tensor& q, const MaybeTensor& k, const Tensor& v, const Tensor& order,
    const Tensor& place, const Tensor& interval, const MaybeTensor& mask,
    int64_t successor_heads);

// --- Through the dispatcher: traced where somebody traces --------------------

// The operator of a kernel above, by its name and type.
template <class Kernel>
c10::TypedOperatorHandle<Kernel> operator_named(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<Kernel>();
}

inline Results call_forward(const Tensor& q, const MaybeTensor& k,
                            const Tensor& v, const Rounds& rounds,
                            const MaybeTensor& mask, int64_t successor_heads,
                            bool trusted) {
  static const auto op = operator_named<decltype(interval_attention_forward)>(
      "reformer::interval_attention_forward");
  const auto& [order, place, interval] = rounds;
  return op.call(q, k, v, order, place, interval, mask, successor_heads,
                 trusted);
}

}  // namespace reformer::python
