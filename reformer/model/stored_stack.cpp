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
      x, count(),
      [&](int64_t i, at::Tensor& x1, const at::Tensor& x2) {
        at::Tensor buckets;
        x1 = blocks_[i].attention.evaluate_and_add(x1, x2, pass, buckets,
                                                   evaluated[i].attention);
      },
      [&](int64_t i, at::Tensor& x2, const at::Tensor& x1) {
        x2 = blocks_[i].feed_forward.evaluate_and_add(
            x2, x1, pass, evaluated[i].feed_forward);
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
      d_y,
      [&](int64_t i, const at::Tensor& d_x1, const at::Tensor& d_x2) {
        blocks_[i].attention.add_gradients(std::move(evaluated[i].attention),
                                           d_x1, d_x2, pass_);
      },
      [&](int64_t i, const at::Tensor& d_x2, const at::Tensor& d_x1) {
        blocks_[i].feed_forward.add_gradients(
            std::move(evaluated[i].feed_forward), d_x2, d_x1, pass_);
      });
  return d_y;
}

}  // namespace reformer
