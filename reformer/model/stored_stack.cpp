#include "reformer/model/stored_stack.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "reformer/model/parts.h"

namespace reformer {
namespace {

at::Tensor feed_forward_of(const Block& block, const at::Tensor& x,
                           const Pass& pass) {
  std::vector<at::Tensor> parts;
  for_each_part(x.size(1), block.feed_forward.chunk(x.size(0)),
                [&](int64_t at, int64_t n) {
                  parts.push_back(
                      block.feed_forward.forward(x.narrow(1, at, n), pass, at));
                });
  return parts.size() == 1 ? parts[0] : at::cat(parts, 1);
}

at::Tensor gradient_of(const at::Tensor& input) {
  return input.grad().defined() ? input.grad() : at::zeros_like(input);
}

}  // namespace

Streams StoredStack::apply(const Block& block, const Streams& x,
                           const Pass& pass, at::Tensor& buckets) const {
  const auto y1 = x.x1 + block.attention.forward(x.x2, pass, buckets);
  const auto y2 = x.x2 + feed_forward_of(block, y1, pass);
  return {y1, y2};
}

Streams ResidualStack::apply(const Block& block, const Streams& x,
                             const Pass& pass, at::Tensor& buckets) const {
  const auto middle = x.x1 + block.attention.forward(x.x1, pass, buckets);
  return {middle + feed_forward_of(block, middle, pass), x.x2};
}

Streams StoredStack::run(Streams x, const Pass& pass,
                         std::vector<at::Tensor>* buckets) const {
  for (const auto& block : blocks_) {
    at::Tensor used;
    x = apply(block, x, pass, used);
    if (buckets) buckets->push_back(used);
  }
  return x;
}

Streams StoredStack::evaluate(Streams x, const Pass& pass,
                              std::vector<at::Tensor>* buckets) const {
  const at::NoGradGuard no_grad;
  return run(std::move(x), pass, buckets);
}

Streams StoredStack::forward(Streams x, const Pass& pass) {
  const at::AutoGradMode record(true);
  input_ = {leaf(x.x1), leaf(x.x2)};
  output_ = run(input_, pass, nullptr);
  return {output_.x1.detach(), output_.x2.detach()};
}

Streams StoredStack::backward(Streams y, Streams d_y) {
  y = {};
  if (two_streams()) {
    torch::autograd::backward({output_.x1, output_.x2}, {d_y.x1, d_y.x2});
  } else {
    torch::autograd::backward({output_.x1}, {d_y.x1});
  }
  const Streams d_x{gradient_of(input_.x1), gradient_of(input_.x2)};
  input_ = {};
  output_ = {};
  return d_x;
}

}  // namespace reformer
