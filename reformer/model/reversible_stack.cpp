#include "reformer/model/reversible_stack.h"

#include <ATen/core/grad_mode.h>

#include <utility>

namespace reformer {

Streams ReversibleStack::forward(Streams x, const Pass& pass) {
  pass_ = pass;
  buckets_.clear();
  return evaluate(std::move(x), pass, &buckets_);
}

Streams ReversibleStack::backward(Streams y, Streams d_y) {
  const at::NoGradGuard no_grad;
  const auto branch_at = [&](const BranchPlace& at) {
    return ReversibleBranch{y[at.to], y[at.from], d_y[at.to], d_y[at.from]};
  };
  for_each_branch_backward(
      [&](const BranchPlace& at, const AttentionLayer& layer) {
        at::Tensor used;
        if (!layer.reads_source()) std::swap(used, buckets_[at.block]);
        layer.reverse(branch_at(at), pass_, used);
      },
      [&](const BranchPlace& at, const FeedForward& layer) {
        layer.reverse(branch_at(at), pass_);
      });
  pass_ = {};
  return d_y;
}

}  // namespace reformer
