#include "reformer/model/stored_stack.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "reformer/base/errors.h"

namespace reformer {

Streams StoredStack::evaluate(Streams x, const Pass& pass,
                              std::vector<at::Tensor>* buckets) const {
  const at::NoGradGuard no_grad;
  const auto& x1 = x.x1;
  const auto& x2 = two_streams() ? x.x2 : x.x1;  // or both mean the same one
  for (const auto& block : blocks_) {
    at::Tensor used;
    block.attention.add_to(x1, x2, pass, used, 1);
    block.feed_forward.add_to(x2, x1, pass, 1);
    if (buckets) buckets->push_back(used);
  }
  return x;
}

Streams StoredStack::forward(Streams x, const Pass& pass) {
  const at::NoGradGuard no_grad;
  evaluated_.clear();
  std::vector<EvaluatedBlock> evaluated;
  auto& x1 = x.x1;
  auto& x2 = two_streams() ? x.x2 : x.x1;
  for (const auto& block : blocks_) {
    auto& [attention, feed_forward] = evaluated.emplace_back();
    at::Tensor buckets;
    x1 = block.attention.evaluate_and_add(x1, x2, pass, buckets, attention);
    x2 = block.feed_forward.evaluate_and_add(x2, x1, pass, feed_forward);
  }
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
  const auto& d_x1 = d_y.x1;
  const auto& d_x2 = two_streams() ? d_y.x2 : d_y.x1;
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    auto [attention, feed_forward] = std::move(evaluated[i]);
    blocks_[i].feed_forward.add_gradients(std::move(feed_forward), d_x2, d_x1,
                                          pass_);
    blocks_[i].attention.add_gradients(std::move(attention), d_x1, d_x2, pass_);
  }
  return d_y;
}

}  // namespace reformer
