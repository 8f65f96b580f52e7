// LSH attention, all of it (paper Sec. 2 and Appendix A).
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/config/lsh_config.h"
#include "reformer/ops/interval_attention.h"

namespace reformer {

//   qk, v    [batch, heads, length, d_head]  float32 or float64, any strides;
//            on CUDA float32 or bfloat16, d_head a multiple of 8 up to 128,
//            length up to 2^23, up to 64 rounds
//   mask     [batch, length] bool, true where real; undefined: all are
//   returns  [batch, heads, length, d_head], differentiable in qk and v
//
// Hashes qk in config.rounds rounds, sorts, and takes one softmax over the
// union of what the rounds (and, where config.local_window > 0, the last so
// many positions) let each query see; see interval_attention for keys, scores
// and lone tokens. config.n_buckets of 0 is the default for this length. The
// rotations are a function of `key`, head and round alone, the same for every
// row of a batch. In the first `successor_heads` heads keys offer the value of
// the position after them (interval_attention).
at::Tensor lsh_attention(const at::Tensor& qk, const at::Tensor& v,
                         const LshConfig& config, const HashKey& key,
                         const at::Tensor& mask = {},
                         int64_t successor_heads = 0);

// The same with the buckets given, [batch, heads, rounds, length] uint16: what
// a reversible layer keeps, because a bucket hashed from a rebuilt input may
// differ. Of more rounds than config.rounds config.more_rounds says whether
// they are one union, or groups of config.rounds each (the last may have
// fewer), whose unnormalised weights add up: a pair counts as often as groups
// see it, those of the local window in all of them. Groups are for evaluation:
// Error where a gradient is asked for. Where there are buckets of the first
// heads alone, the others see the last `near_window` positions (not causal: on
// either side) and nothing else, and the successor heads are among the first.
at::Tensor lsh_attention(const at::Tensor& qk, const at::Tensor& v,
                         const at::Tensor& buckets, const LshConfig& config,
                         const at::Tensor& mask = {},
                         int64_t successor_heads = 0, int64_t near_window = 0);

// The buckets that the first form uses. Where qk has a part of a layer's heads,
// `first_head` is the number of its first: rotations are drawn by the head's.
at::Tensor lsh_attention_buckets(const at::Tensor& qk, const LshConfig& config,
                                 const HashKey& key, int64_t first_head = 0);

// The rounds of these buckets, the local one first where there is one.
IntervalRounds lsh_rounds(const at::Tensor& buckets, const LshConfig& config,
                          const at::Tensor& mask = {});

}  // namespace reformer
