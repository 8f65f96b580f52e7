#include "reformer/model/language_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "reformer/model/parts.h"
#include "reformer/ops/row_products.h"

namespace reformer {
namespace {

constexpr int64_t kIgnored = -100;

Streams part_of(const Streams& y, int64_t at, int64_t n) {
  return {y.x1.narrow(1, at, n), y.x2.narrow(1, at, n)};
}

// The sum of losses of one part, as a scalar tensor; also added to `sums`.
at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& symbols,
                   const at::Tensor& weights, at::Tensor& sums) {
  const auto flat = logits.flatten(0, 1);  // [batch * part, vocabulary]
  const auto wanted =
      at::where(weights, symbols, kIgnored).flatten();  // [batch * part]
  const auto total = at::nll_loss(at::log_softmax(flat, 1), wanted, {},
                                  at::Reduction::Sum, kIgnored);
  const at::NoGradGuard no_grad;
  sums[0] += total.detach();
  sums[1] += weights.sum();
  sums[2] += flat.argmax(1).eq(wanted).sum();
  return total;
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
  return std::max<int64_t>(16, part_numbers(device) / (width * batch));
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
  return normed_products(joined(y), {norm_weight_, norm_bias_},
                         {{weight_, bias_}},
                         {placement_.compute, placement_.type})[0];
}

at::Tensor LanguageHead::loss(const Streams& y, const at::Tensor& symbols,
                              const at::Tensor& weights) const {
  const at::NoGradGuard no_grad;
  auto sums = at::zeros({3}, y.x1.options().dtype(at::kDouble));
  for_each_part(y.x1.size(1), chunk(y.x1.size(0)), [&](int64_t at, int64_t n) {
    loss_of(logits(part_of(y, at, n)), symbols.narrow(1, at, n),
            weights.narrow(1, at, n), sums);
  });
  return sums;
}

at::Tensor LanguageHead::losses(const Streams& y,
                                const at::Tensor& symbols) const {
  const at::NoGradGuard no_grad;
  auto losses = at::empty(symbols.sizes(), y.x1.options());
  for_each_part(y.x1.size(1), chunk(y.x1.size(0)), [&](int64_t at, int64_t n) {
    const auto log_p = at::log_softmax(logits(part_of(y, at, n)), 2);
    const auto wanted = symbols.narrow(1, at, n).unsqueeze(2);
    losses.narrow(1, at, n).copy_(log_p.gather(2, wanted).squeeze(2).neg_());
  });
  return losses;
}

at::Tensor LanguageHead::backward(const Streams& y, const at::Tensor& symbols,
                                  const at::Tensor& weights, double scale,
                                  Streams& d_y) const {
  auto sums = at::zeros({3}, y.x1.options().dtype(at::kDouble));
  d_y = {at::empty_like(y.x1),
         two_streams_ ? at::empty_like(y.x2) : at::zeros_like(y.x2)};
  for_each_part(y.x1.size(1), chunk(y.x1.size(0)), [&](int64_t at, int64_t n) {
    const auto part = part_of(y, at, n);
    const Streams input{leaf(part.x1), leaf(part.x2)};
    {
      const at::AutoGradMode record(true);
      const auto total = loss_of(logits(input), symbols.narrow(1, at, n),
                                 weights.narrow(1, at, n), sums);
      torch::autograd::backward({total * scale});
    }
    d_y.x1.narrow(1, at, n).copy_(input.x1.grad());
    if (two_streams_) d_y.x2.narrow(1, at, n).copy_(input.x2.grad());
  });
  return sums;
}

}  // namespace reformer
