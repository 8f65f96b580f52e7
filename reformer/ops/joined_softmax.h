// One softmax from several over other keys of the same queries.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/ops/interval_attention.h"

namespace reformer {

// Attention whose unnormalised weights are those of all results that were
// added: a pair that several of them hold counts several times. Held in the
// type of the log-sum-exps; without gradients. On a CPU the same bits for a row
// alone and in a batch, and for any number of threads.
class JoinedSoftmax {
 public:
  // Where a query sees nobody (lse -inf) `result` counts for nothing, unless
  // nobody is seen in any of them.
  void add(const AttentionResult& result);

  // [batch, heads, length, d_head]; something must have been added.
  const at::Tensor& output() const { return output_; }

 private:
  at::Tensor output_;
  at::Tensor lse_;
};

}  // namespace reformer
