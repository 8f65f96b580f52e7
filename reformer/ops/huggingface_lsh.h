// LSH attention as Hugging Face's Reformers have it, for their checkpoints.
//
// It differs from ours in what it sees and how it counts (docs/numerics.md):
// the whole of a query's chunk of sorted places and of the chunk before it,
// whatever their buckets; the chunk before a round's first is the last of the
// round before, and of the first round that of the last; a softmax for each
// round, joined by their denominators, so that a pair counts as often as it is
// found. Intervals of one bucket cannot say that, so it is plain: gathers and
// matmuls of LibTorch's, with memory for a chunk's scores of every query.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "reformer/config/config.h"

namespace reformer {

struct HuggingfaceLsh {
  int64_t chunk_length = 64;
  int64_t multiple = 64;  // inputs longer than `shortest` are padded to one
  int64_t shortest = 64;
  std::vector<int64_t> factors = {64};  // of the buckets; the first is the
                                        // least significant

  int64_t n_buckets() const;

  // Positions of an input of so many, with the padding behind them.
  int64_t padded(int64_t length) const;

  // Whether such an input is no longer than a chunk: it is not hashed, and all
  // of its past is seen.
  bool sees_all(int64_t length) const { return padded(length) <= chunk_length; }
};

HuggingfaceLsh huggingface_lsh(const Config& config);

// Of a position with itself: so small that it vanishes beside any other.
inline constexpr double kHuggingfaceScoreOfItself = -1e5;

//   qk         [batch, heads, length, d_head]
//   rotations  [heads, rounds, d_head, sum of factors / 2]
//   returns    [batch, heads, rounds, length] uint16, no gradient
at::Tensor huggingface_lsh_buckets(const at::Tensor& qk,
                                   const at::Tensor& rotations,
                                   const std::vector<int64_t>& factors);

//   qk, v    [batch, heads, length, d_head]
//   buckets  [batch, heads, rounds, length] uint16
//   returns  [batch, heads, length, d_head], differentiable in qk and v
at::Tensor huggingface_lsh_attention(const at::Tensor& qk, const at::Tensor& v,
                                     const at::Tensor& buckets,
                                     const HuggingfaceLsh& config);

// Its keys, for whoever keeps them: qk / sqrt(|qk|^2 + 1e-6 d_head).
at::Tensor huggingface_keys(const at::Tensor& qk);

// The last position alone.
//
//   q        [heads, 1, d_head]
//   k, v     [heads, n, d_head]: of what it sees, one round after the other
//   hidden   [heads, n] bool: what is none of that (padding)
//   itself   [heads, n] bool: which is its own
//   returns  [heads, 1, d_head]
at::Tensor huggingface_attend_next(const at::Tensor& q, const at::Tensor& k,
                                   const at::Tensor& v,
                                   const at::Tensor& hidden,
                                   const at::Tensor& itself);

}  // namespace reformer
