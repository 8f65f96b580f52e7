#include "reformer/model/reversible_stack.h"

#include <ATen/core/grad_mode.h>

namespace reformer {

Streams ReversibleStack::run(Streams x, const Pass& pass,
                             std::vector<at::Tensor>& buckets) const {
  const at::NoGradGuard no_grad;
  const auto count = static_cast<int64_t>(blocks_.size());
  for (int64_t i = 0; i < count; ++i) {
    const auto& block = blocks_[i];
    if (observer_) observer_->enter(i, i + 1 < count ? i + 1 : -1, false);
    at::Tensor used;
    block.attention.add_to(x.x1, x.x2, pass, used, 1);
    block.feed_forward.add_to(x.x2, x.x1, pass, 1);
    buckets[i] = used;
    if (observer_) observer_->leave(i, false);
  }
  return x;
}

Streams ReversibleStack::evaluate(Streams x, const Pass& pass,
                                  std::vector<at::Tensor>* buckets) const {
  std::vector<at::Tensor> used(blocks_.size());
  auto y = run(std::move(x), pass, used);
  if (buckets) *buckets = std::move(used);
  return y;
}

Streams ReversibleStack::forward(Streams x, const Pass& pass) {
  pass_ = pass;
  buckets_.assign(blocks_.size(), {});
  return run(std::move(x), pass, buckets_);
}

Streams ReversibleStack::backward(Streams y, Streams d_y) {
  const at::NoGradGuard no_grad;
  for (auto i = static_cast<int64_t>(blocks_.size()) - 1; i >= 0; --i) {
    if (observer_) observer_->enter(i, i - 1, true);
    blocks_[i].feed_forward.undo({y.x2, y.x1, d_y.x2, d_y.x1}, pass_);
    blocks_[i].attention.undo({y.x1, y.x2, d_y.x1, d_y.x2}, pass_, buckets_[i]);
    buckets_[i].reset();
    if (observer_) observer_->leave(i, true);
  }
  return d_y;
}

Streams ReversibleStack::rebuild(Streams y) const {
  const at::NoGradGuard no_grad;
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    at::Tensor buckets = buckets_[i];
    blocks_[i].feed_forward.add_to(y.x2, y.x1, pass_, -1);
    blocks_[i].attention.add_to(y.x1, y.x2, pass_, buckets, -1);
  }
  return y;
}

int64_t ReversibleStack::bucket_bytes() const {
  int64_t bytes = 0;
  for (const auto& buckets : buckets_) {
    if (buckets.defined()) bytes += static_cast<int64_t>(buckets.nbytes());
  }
  return bytes;
}

}  // namespace reformer
