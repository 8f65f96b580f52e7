#include "reformer/model/stored_stack.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "reformer/base/errors.h"

namespace reformer {

Streams StoredStack::forward(Streams x, const Pass& pass) {
  const at::NoGradGuard no_grad;
  evaluated_.clear();
  std::vector<EvaluatedBlock> evaluated(blocks_.size());
  for_each_branch(
      count(),
      [&](const BranchPlace& at, const AttentionLayer& layer) {
        at::Tensor buckets;
        x[at.to] =
            layer.evaluate_and_add(x[at.to], x[at.from], pass, buckets,
                                   evaluated[size_t(at.block)].of(layer));
      },
      [&](const BranchPlace& at, const FeedForward& layer) {
        x[at.to] =
            layer.evaluate_and_add(x[at.to], x[at.from], pass,
                                   evaluated[size_t(at.block)].feed_forward);
      });
  pass_ = pass;
  evaluated_ = std::move(evaluated);
  return x;
}

Streams StoredStack::backward(Streams y, Streams d_y) {
  const at::NoGradGuard no_grad;
  auto evaluated = std::exchange(evaluated_, {});
  require(evaluated.size() == blocks_.size(),
          "stored stack: a backward pass takes a forward pass before it");
  y = {};
  for_each_branch_backward(
      [&](const BranchPlace& at, const AttentionLayer& layer) {
        layer.add_gradients(std::move(evaluated[size_t(at.block)].of(layer)),
                            d_y[at.to], d_y[at.from], pass_);
      },
      [&](const BranchPlace& at, const FeedForward& layer) {
        layer.add_gradients(std::move(evaluated[size_t(at.block)].feed_forward),
                            d_y[at.to], d_y[at.from], pass_);
      });
  pass_ = {};
  return d_y;
}

}  // namespace reformer
