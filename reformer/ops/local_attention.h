// Attention to nearby positions.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/config/lsh_config.h"

namespace reformer {

struct LocalConfig {
  int64_t chunk_length = 128;
  Window window = Window::kChunk;
  bool causal = true;
};

//   qk, v    [batch, heads, length, d_head]  float32 or float64, any strides
//   mask     [batch, length] bool, true where real; undefined: all are
//   returns  [batch, heads, length, d_head], differentiable in qk and v
//
// Shared queries and keys, as in lsh_attention, but in natural order: each
// position sees its own chunk of chunk_length positions and the previous one,
// or under `trailing` the last chunk_length positions (on either side when not
// causal). Padded positions are left out before chunks are counted. In the
// first `successor_heads` heads keys offer the value of the position after them
// (interval_attention).
at::Tensor local_attention(const at::Tensor& qk, const at::Tensor& v,
                           const LocalConfig& config,
                           const at::Tensor& mask = {},
                           int64_t successor_heads = 0);

// The same of separate queries and keys, as Hugging Face's Reformers have it:
// scores q . k / sqrt(d_head), self included.
at::Tensor local_attention_separate_qk(const at::Tensor& q, const at::Tensor& k,
                                       const at::Tensor& v,
                                       const LocalConfig& config,
                                       const at::Tensor& mask = {});

}  // namespace reformer
