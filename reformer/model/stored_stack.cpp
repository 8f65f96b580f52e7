#include "reformer/model/stored_stack.h"

#include <ATen/core/grad_mode.h>

#include <utility>

// The residual Transformer has one stream: both names mean the same tensor.
namespace reformer {

Streams StoredStack::evaluate(Streams x, const Pass& pass,
                              std::vector<at::Tensor>* buckets) const {
  const at::NoGradGuard no_grad;
  const auto& x1 = x.x1;
  const auto& x2 = two_streams() ? x.x2 : x.x1;
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
  pass_ = pass;
  evaluated_.clear();
  auto& x1 = x.x1;
  auto& x2 = two_streams() ? x.x2 : x.x1;
  for (const auto& block : blocks_) {
    auto& [attention, feed_forward] = evaluated_.emplace_back();
    at::Tensor buckets;
    x1 = block.attention.evaluate_and_add(x1, x2, pass, buckets, attention);
    x2 = block.feed_forward.evaluate_and_add(x2, x1, pass, feed_forward);
  }
  return x;
}

Streams StoredStack::backward(Streams y, Streams d_y) {
  const at::NoGradGuard no_grad;
  y = {};
  const auto& d_x1 = d_y.x1;
  const auto& d_x2 = two_streams() ? d_y.x2 : d_y.x1;
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    auto [attention, feed_forward] = std::move(evaluated_[i]);
    evaluated_.pop_back();
    blocks_[i].feed_forward.add_gradients(std::move(feed_forward), d_x2, d_x1,
                                          pass_);
    blocks_[i].attention.add_gradients(std::move(attention), d_x1, d_x2, pass_);
  }
  return d_y;
}

}  // namespace reformer
