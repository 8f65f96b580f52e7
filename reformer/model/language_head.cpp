#include "reformer/model/language_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "reformer/model/parameter_gradients.h"
#include "reformer/model/parts.h"
#include "reformer/ops/linear.h"

namespace reformer {
namespace {

Streams part_of(const Streams& y, int64_t at, int64_t n) {
  return {y.x1.narrow(1, at, n), y.x2.narrow(1, at, n)};
}

using Wanted = LanguageHead::Wanted;

Wanted wanted_of(const at::Tensor& tokens, const at::Tensor& loss_mask,
                 int64_t at, int64_t n) {
  return {tokens.narrow(1, at, n).reshape({-1, 1}),
          loss_mask.narrow(1, at, n).reshape({-1, 1})};
}

// Adds to `sums` what `read` finds there; returns the log-probabilities, [rows,
// vocabulary] as the logits.
at::Tensor add_losses(const at::Tensor& logits, const Wanted& wanted,
                      const at::Tensor& sums) {
  const auto log_p = at::log_softmax(logits, 1);
  const auto right = logits.argmax(1, /*keepdim=*/true).eq(wanted.tokens);
  // Chosen and not multiplied: infinity times 0 is NaN.
  const auto loss = at::where(wanted.counts, log_p.gather(1, wanted.tokens), 0)
                        .sum(at::kDouble);
  sums[0] -= loss;
  sums[1] += wanted.counts.sum();
  sums[2] += right.logical_and_(wanted.counts).sum();
  return log_p;
}

// The gradient of scale * (sum of losses) with respect to the logits, in place
// of their log-probabilities: p - 1 of what is wanted, p of the rest.
at::Tensor loss_gradient(const at::Tensor& log_p, const Wanted& wanted,
                         double scale) {
  const auto d = log_p.exp_();
  d.scatter_(1, wanted.tokens, d.gather(1, wanted.tokens).sub_(1));
  return d.mul_(wanted.counts.to(d.scalar_type()).mul_(scale));
}

}  // namespace

LossSums read(const at::Tensor& sums) {
  const auto host = sums.cpu();
  const double* numbers = host.const_data_ptr<double>();
  return {numbers[0], static_cast<int64_t>(numbers[1]),
          static_cast<int64_t>(numbers[2])};
}

int64_t loss_chunk(const ModelConfig& model, int64_t batch,
                   at::DeviceType device) {
  if (model.loss_chunk > 0) return model.loss_chunk;
  const int64_t width = std::max(model.vocabulary, 2 * model.d_model);
  return std::max<int64_t>(16, part_elements(device) / (width * batch));
}

LanguageHead::LanguageHead(const Config& config, bool two_streams,
                           ParameterStore& store)
    : model_(config.model),
      placement_(store.placement()),
      two_streams_(two_streams) {
  const int64_t vocabulary = config.model.vocabulary;
  const int64_t width = config.model.d_model * (two_streams ? 2 : 1);
  norm_weight_ = store.constant("head.norm.weight", {width}, 1);
  norm_bias_ = store.constant("head.norm.bias", {width}, 0);
  weight_ = store.glorot("head.weight", vocabulary, width);
  bias_ = store.constant("head.bias", {vocabulary}, 0);
}

at::Tensor LanguageHead::joined(const Streams& y) const {
  return two_streams_ ? at::cat({y.x1, y.x2}, 2) : y.x1;
}

int64_t LanguageHead::chunk(int64_t batch) const {
  return loss_chunk(model_, batch, placement_.device.type());
}

at::Tensor LanguageHead::logits(const Streams& y) const {
  return norm_linear(joined(y), {norm_weight_, norm_bias_}, {{weight_, bias_}},
                     {placement_.compute, placement_.type})[0];
}

at::Tensor LanguageHead::loss(const Streams& y, const at::Tensor& tokens,
                              const at::Tensor& loss_mask) const {
  const at::NoGradGuard no_grad;
  auto sums = at::zeros({3}, y.x1.options().dtype(at::kDouble));
  for_each_part(y.x1.size(1), chunk(y.x1.size(0)), [&](int64_t at, int64_t n) {
    add_losses(as_matrix(logits(part_of(y, at, n))),
               wanted_of(tokens, loss_mask, at, n), sums);
  });
  return sums;
}

at::Tensor LanguageHead::losses(const Streams& y,
                                const at::Tensor& tokens) const {
  const at::NoGradGuard no_grad;
  auto losses = at::empty(tokens.sizes(), y.x1.options());
  for_each_part(y.x1.size(1), chunk(y.x1.size(0)), [&](int64_t at, int64_t n) {
    const auto log_p = at::log_softmax(logits(part_of(y, at, n)), 2);
    const auto wanted = tokens.narrow(1, at, n).unsqueeze(2);
    losses.narrow(1, at, n).copy_(log_p.gather(2, wanted).squeeze(2).neg_());
  });
  return losses;
}

at::Tensor LanguageHead::backward(const Streams& y, const at::Tensor& tokens,
                                  const at::Tensor& loss_mask, double scale,
                                  Streams& d_y) const {
  const at::NoGradGuard no_grad;
  auto sums = at::zeros({3}, y.x1.options().dtype(at::kDouble));
  d_y = {at::empty_like(y.x1),
         two_streams_ ? at::empty_like(y.x2) : at::zeros_like(y.x2)};
  for_each_part(y.x1.size(1), chunk(y.x1.size(0)), [&](int64_t at, int64_t n) {
    const auto d = part_backward(
        part_of(y, at, n), wanted_of(tokens, loss_mask, at, n), scale, sums);
    const int64_t width = y.x1.size(2);
    d_y.x1.narrow(1, at, n).copy_(d.narrow(2, 0, width));
    if (two_streams_) {
      d_y.x2.narrow(1, at, n).copy_(d.narrow(2, width, width));
    }
  });
  return sums;
}

// Returns the gradient of the joined streams, [batch, n, width].
at::Tensor LanguageHead::part_backward(const Streams& part,
                                       const Wanted& wanted, double scale,
                                       const at::Tensor& sums) const {
  const NormWeights norm{norm_weight_, norm_bias_};
  const auto normed =
      layer_norm_forward(joined(part), norm, placement_.compute);
  const auto matrix = weight_.to(placement_.compute);
  const auto rows = as_matrix(normed.y);
  const auto d_logits = loss_gradient(
      add_losses(matmul(rows, matrix.t(), placement_.type).add_(bias_), wanted,
                 sums),
      wanted, scale);  // [batch * n, vocabulary]
  add_bias_gradient(bias_, d_logits);
  const auto d_rounded = d_logits.to(placement_.compute);
  add_weight_gradient(weight_, rows, d_rounded);
  const auto d_x = at::zeros_like(normed.x);
  add_norm_gradients(normed, norm, at::mm(d_rounded, matrix).view_as(d_x), d_x);
  return d_x;
}

}  // namespace reformer
