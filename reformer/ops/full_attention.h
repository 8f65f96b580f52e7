// Exact attention to everything, without ever holding [length, length].
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace reformer {

//   q, k, v  [batch, heads, length, d_head], differentiable in all three
//   mask     [batch, length of k] bool, true where real; undefined: all are
//   returns  [batch, heads, length of q, d_head]
//
// Separate queries and keys: scores q . k / sqrt(d_head), self included, as in
// the ordinary Transformer. The fastest of LibTorch's operators for such
// inputs, or interval_attention where they would need a [length, length] mask
// (padding). Padded rows are 0.
// k and v may be of another length than q when neither causal nor masked.
// `gradient`: on a GPU the fastest operators add gradients up in any order, so
// that they differ from call to call.
enum class GradientSums { kDeterministic, kNondeterministic };
at::Tensor full_attention(const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, bool causal,
                          const at::Tensor& mask = {},
                          GradientSums gradient = GradientSums::kDeterministic);

// The same for queries of one sequence and keys of another, or of the same
// where all of it is seen: not causal, every query real.
//
//   mask     [batch, length of k] bool, true where real; undefined: all are. A
//            row without a real key has no meaning, but is finite.
//
// By LibTorch's operators, which add a number to each score that leaves padded
// keys a weight of exactly 0; memory O(length of q + length of k).
at::Tensor cross_attention(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const at::Tensor& mask = {},
    GradientSums gradient = GradientSums::kDeterministic);

// Which operator that is where there is no mask, for reports.
std::string full_attention_kernel(const at::Tensor& q, const at::Tensor& k,
                                  bool causal, GradientSums gradient);

// Shared queries and keys, as in lsh_attention: unit keys, no scale, self
// excluded unless alone. What LSH attention approximates. In the first
// `successor_heads` heads keys offer the value of the position after them
// (interval_attention).
at::Tensor full_shared_qk_attention(const at::Tensor& qk, const at::Tensor& v,
                                    bool causal, const at::Tensor& mask = {},
                                    int64_t successor_heads = 0);

}  // namespace reformer
