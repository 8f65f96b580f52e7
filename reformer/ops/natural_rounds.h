// One round in natural order: what local and full attention are made of.
#pragma once

#include "reformer/ops/interval_attention.h"
#include "reformer/ops/lsh_intervals.h"

namespace reformer {

// Real positions in their order, padded ones behind them; windows by `rule`.
// Shared among all heads, and among the batch where there is no mask.
IntervalRounds natural_rounds(int64_t length, const WindowRule& rule,
                              bool causal, const at::Tensor& mask,
                              at::Device device);

}  // namespace reformer
