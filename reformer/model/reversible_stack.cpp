#include "reformer/model/reversible_stack.h"

#include <ATen/core/grad_mode.h>

#include "reformer/model/parts.h"

namespace reformer {
namespace {

// x += FeedForward(y), or -= to undo it, a part of the positions at a time.
void add_feed_forward(const FeedForward& layer, const at::Tensor& y,
                      const Pass& pass, double sign, at::Tensor& x) {
  for_each_part(y.size(1), layer.chunk(y.size(0)), [&](int64_t at, int64_t n) {
    x.narrow(1, at, n).add_(layer.forward(y.narrow(1, at, n), pass, at), sign);
  });
}

// Undoes y2 = x2 + FeedForward(y1) in y2, and adds the gradient that reaches
// y1 through it to d.x1: one evaluation of the layer serves both.
void undo_feed_forward(const FeedForward& layer, const Pass& pass, Streams& y,
                       Streams& d) {
  for_each_part(y.x1.size(1), layer.chunk(y.x1.size(0)),
                [&](int64_t at, int64_t n) {
                  const auto input = leaf(y.x1.narrow(1, at, n));
                  auto output = [&] {
                    const at::AutoGradMode record(true);
                    return layer.forward(input, pass, at);
                  }();
                  y.x2.narrow(1, at, n).sub_(output.detach());
                  backward_from(std::move(output), d.x2.narrow(1, at, n));
                  d.x1.narrow(1, at, n).add_(input.grad());
                });
}

// Likewise for y1 = x1 + Attention(x2). In two parts, so that the gradient of
// the layer's output is gone before the attention's own gradient needs memory.
void undo_attention(const AttentionLayer& layer, const Pass& pass,
                    at::Tensor buckets, Streams& y, Streams& d) {
  const auto input = leaf(y.x2);
  auto attended = [&] {
    const at::AutoGradMode record(true);
    return layer.attend(layer.project(input), pass, buckets);
  }();
  auto d_attended = [&] {
    const auto rows = leaf(attended);
    auto output = [&] {
      const at::AutoGradMode record(true);
      return layer.finish(rows, pass);
    }();
    y.x1.sub_(output.detach());
    backward_from(std::move(output), d.x1);
    return rows.grad();
  }();
  backward_from(std::move(attended), d_attended);
  d.x2.add_(input.grad());
}

}  // namespace

Streams ReversibleStack::run(Streams x, const Pass& pass,
                             std::vector<at::Tensor>& buckets) const {
  const at::NoGradGuard no_grad;
  const auto count = static_cast<int64_t>(blocks_.size());
  for (int64_t i = 0; i < count; ++i) {
    const auto& block = blocks_[i];
    if (observer_) observer_->enter(i, i + 1 < count ? i + 1 : -1, false);
    at::Tensor used;
    x.x1.add_(block.attention.forward(x.x2, pass, used));
    add_feed_forward(block.feed_forward, x.x1, pass, 1, x.x2);
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
    undo_feed_forward(blocks_[i].feed_forward, pass_, y, d_y);
    undo_attention(blocks_[i].attention, pass_, buckets_[i], y, d_y);
    buckets_[i].reset();
    if (observer_) observer_->leave(i, true);
  }
  return d_y;
}

Streams ReversibleStack::rebuild(Streams y) const {
  const at::NoGradGuard no_grad;
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    at::Tensor buckets = buckets_[i];
    add_feed_forward(blocks_[i].feed_forward, y.x1, pass_, -1, y.x2);
    y.x1.sub_(blocks_[i].attention.forward(y.x2, pass_, buckets));
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
