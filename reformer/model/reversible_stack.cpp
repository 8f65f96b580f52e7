#include "reformer/model/reversible_stack.h"

#include <ATen/core/grad_mode.h>

namespace reformer {

Streams ReversibleStack::forward(Streams x, const Pass& pass) {
  pass_ = pass;
  buckets_.clear();
  return evaluate(std::move(x), pass, &buckets_);
}

Streams ReversibleStack::backward(Streams y, Streams d_y) {
  const at::NoGradGuard no_grad;
  for_each_branch_backward(
      y,
      [&](int64_t i, const at::Tensor& y1, const at::Tensor& y2) {
        blocks_[i].attention.reverse({y1, y2, d_y.x1, d_y.x2}, pass_,
                                     buckets_[i]);
        buckets_[i].reset();
      },
      [&](int64_t i, const at::Tensor& y2, const at::Tensor& y1) {
        blocks_[i].feed_forward.reverse({y2, y1, d_y.x2, d_y.x1}, pass_);
      });
  return d_y;
}

Streams ReversibleStack::rebuild(Streams y) const {
  const at::NoGradGuard no_grad;
  for_each_branch_backward(
      y,
      [&](int64_t i, const at::Tensor& y1, const at::Tensor& y2) {
        at::Tensor buckets = buckets_[i];
        blocks_[i].attention.add_to(y1, y2, pass_, buckets, -1);
      },
      [&](int64_t i, const at::Tensor& y2, const at::Tensor& y1) {
        blocks_[i].feed_forward.add_to(y2, y1, pass_, -1);
      });
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
