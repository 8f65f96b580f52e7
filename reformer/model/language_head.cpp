#include "reformer/model/language_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/argmax.h>
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
#include "reformer/model/sequence_exchange.h"
#include "reformer/ops/linear.h"
#include "reformer/ops/packed_matrices.h"
#include "reformer/ops/top_tokens.h"

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

}  // namespace

LossSums read(const at::Tensor& sums) {
  const auto host = sums.cpu();
  const double* numbers = host.const_data_ptr<double>();
  return {numbers[0], static_cast<int64_t>(numbers[1]),
          static_cast<int64_t>(numbers[2])};
}

int64_t loss_chunk(const ModelConfig& model, int64_t batch,
                   at::DeviceType device, int64_t sharing) {
  if (model.loss_chunk > 0) return model.loss_chunk;
  const int64_t width = std::max(model.vocabulary, 2 * model.d_model);
  return std::max<int64_t>(16,
                           part_elements(device) / (width * batch * sharing));
}

LanguageHead::LanguageHead(const Config& config, Join join,
                           ParameterStore& store, const at::Tensor& table)
    : model_(config.model),
      placement_(store.placement()),
      join_(join),
      label_smoothing_(config.train.label_smoothing),
      shared_(table.defined()) {
  const int64_t vocabulary = config.model.vocabulary;
  const int64_t width = joined_width(config.model.d_model, join);
  norm_ = {store.constant("head.norm.weight", {width}, 1),
           store.constant("head.norm.bias", {width}, 0),
           config.model.norm_epsilon};
  weight_ = shared_ ? table : store.glorot("head.weight", vocabulary, width);
  bias_ = store.constant("head.bias", {vocabulary}, 0);
}

at::Tensor LanguageHead::weight() const {
  return shared_ ? weight_.narrow(0, 0, model_.vocabulary) : weight_;
}

// Of logits = x W^T: x [rows, width], d_logits [rows, vocabulary].
void LanguageHead::add_projection_gradient(const at::Tensor& x,
                                           const at::Tensor& d_logits) const {
  if (!shared_) return add_weight_gradient(weight_, x, d_logits);
  add_matmul(gradient_sum(weight_).narrow(0, 0, model_.vocabulary),
             d_logits.t(), x);
}

// The gradient of scale * (sum of losses) with respect to the logits, in place
// of their log-probabilities: p - 1 of what is wanted, p of the rest.
at::Tensor LanguageHead::loss_gradient(const at::Tensor& log_p,
                                       const Wanted& wanted,
                                       double scale) const {
  const auto d = log_p.exp_();
  d.scatter_(1, wanted.tokens,
             d.gather(1, wanted.tokens).sub_(1 - label_smoothing_));
  if (label_smoothing_ > 0) {
    d.sub_(label_smoothing_ / double(model_.vocabulary));
  }
  return d.mul_(wanted.counts.to(d.scalar_type()).mul_(scale));
}

int64_t LanguageHead::chunk(int64_t batch) const {
  return loss_chunk(model_, batch, placement_.device.type(),
                    sharing_ranks(placement_.sequence));
}

at::Tensor LanguageHead::logits(const Streams& y) const {
  return norm_linear(joined(y, join_), norm_, {{weight(), bias_}},
                     {placement_.compute, placement_.type})[0];
}

at::Tensor LanguageHead::top_tokens(const Streams& y, int64_t k,
                                    int64_t besides) const {
  const at::NoGradGuard no_grad;
  if (!placement_.device.is_cpu()) {
    return reformer::top_tokens(as_matrix(logits(y)), k, besides);
  }
  const auto rows =
      as_matrix(layer_norm(joined(y, join_), norm_, placement_.compute));
  if (PackedMatrices::in_use()) {  // whole: parts of a packed matrix are none
    return reformer::top_tokens(linear(rows, {weight(), bias_}), k, besides);
  }
  constexpr int64_t kPartElements = 1 << 18;  // 1 MiB of float32
  const auto matrix = weight().to(placement_.compute);
  const auto bias = bias_.to(placement_.compute);
  const int64_t n_rows = rows.size(0);
  const int64_t most =
      std::clamp<int64_t>(kPartElements / n_rows, 1024, model_.vocabulary);
  TopTokens top(n_rows, k, besides, placement_.compute);
  auto part = at::empty({n_rows * most}, rows.options());
  for_each_part(model_.vocabulary, most, [&](int64_t at, int64_t n) {
    auto logits = part.narrow(0, 0, n_rows * n).view({n_rows, n});
    at::addmm_out(logits, bias.narrow(0, at, n), rows,
                  matrix.narrow(0, at, n).t());
    top.add(logits);
  });
  return top.result();
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
         join_ == Join::kFirst ? at::zeros_like(y.x2) : at::empty_like(y.x2)};
  for_each_part(y.x1.size(1), chunk(y.x1.size(0)), [&](int64_t at, int64_t n) {
    const auto d = part_backward(
        part_of(y, at, n), wanted_of(tokens, loss_mask, at, n), scale, sums);
    split_gradient(d, join_, part_of(d_y, at, n));
  });
  return sums;
}

// Returns the gradient of the joined streams, [batch, n, width].
at::Tensor LanguageHead::part_backward(const Streams& part,
                                       const Wanted& wanted, double scale,
                                       const at::Tensor& sums) const {
  const auto normed =
      layer_norm_forward(joined(part, join_), norm_, placement_.compute);
  const auto matrix = weight().to(placement_.compute);
  const auto rows = as_matrix(normed.y);
  const auto d_logits = loss_gradient(
      add_losses(matmul(rows, matrix.t(), placement_.type).add_(bias_), wanted,
                 sums),
      wanted, scale);  // [batch * n, vocabulary]
  add_bias_gradient(bias_, d_logits);
  const auto d_rounded = d_logits.to(placement_.compute);
  add_projection_gradient(rows, d_rounded);
  const auto d_x = at::zeros_like(normed.x);
  add_norm_gradients(normed, norm_, at::mm(d_rounded, matrix).view_as(d_x),
                     d_x);
  return d_x;
}

}  // namespace reformer
