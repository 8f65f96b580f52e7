#include "reformer/model/language_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>

#include <cmath>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/model/memory_limits.h"
#include "reformer/model/parameter_gradients.h"
#include "reformer/ops/embedding_gradient.h"
#include "reformer/ops/interval_statistics.h"

namespace reformer {

LanguageModel::LanguageModel(const Config& config, const Placement& placement)
    : config_((check(config), require_memory_for_parameters(config, placement),
               config)),
      store_(static_cast<uint64_t>(config.train.seed), placement),
      embedding_(
          store_.normal("embedding.weight",
                        {config.model.vocabulary + 1, config.model.d_model},
                        1 / std::sqrt(double(config.model.d_model)))),
      ngrams_(config, store_),
      positions_(config, store_),
      stack_(make_stack(config, store_)),
      head_(config, stack_->two_streams(), store_) {}

at::Tensor LanguageModel::shifted(const at::Tensor& tokens) const {
  require(tokens.dim() == 2 && tokens.scalar_type() == at::kLong &&
              tokens.size(1) >= 1,
          "language model: tokens must be [batch, length] int64, got sizes ",
          tokens.sizes());
  const auto start =
      at::full({tokens.size(0), 1}, start_token(), tokens.options());
  return at::cat({start, tokens.narrow(1, 0, tokens.size(1) - 1)}, 1);
}

at::Tensor LanguageModel::here(const at::Tensor& x) const {
  return copied_to(x, placement().device);
}

// `ngrams` and `positions` may be undefined: nothing to add.
at::Tensor LanguageModel::embed_with(const at::Tensor& inputs,
                                     const at::Tensor& ngrams,
                                     const at::Tensor& positions) const {
  auto x = at::embedding(embedding_, inputs) *
           std::sqrt(double(config_.model.d_model));
  if (ngrams.defined()) x = x + ngrams;
  return positions.defined() ? x + positions : x;
}

at::Tensor LanguageModel::embed(const at::Tensor& inputs, int64_t at,
                                int64_t n) const {
  return embed_with(inputs.narrow(1, at, n), ngrams_.encode(inputs, at, n),
                    positions_.encode(at, n));
}

at::Tensor LanguageModel::embed_next(const at::Tensor& recent,
                                     const at::Tensor& positions) const {
  return embed_with(recent.select(1, recent.size(1) - 1),
                    ngrams_.encode_last(recent), positions_.encode(positions));
}

Streams LanguageModel::begin(const at::Tensor& inputs) const {
  const at::NoGradGuard no_grad;
  return stack_->begin(embed(inputs, 0, inputs.size(1)));
}

Streams LanguageModel::outputs(const at::Tensor& tokens, const Pass& pass,
                               std::vector<at::Tensor>* buckets) const {
  return stack_->evaluate(begin(shifted(here(tokens))), pass, buckets);
}

at::Tensor LanguageModel::attention_input(const at::Tensor& tokens,
                                          const Pass& pass,
                                          int64_t block) const {
  const auto x = stack_->evaluate(begin(shifted(here(tokens))), pass,
                                  /*buckets=*/nullptr, block);
  return stack_->two_streams() ? x.x2 : x.x1;
}

void LanguageModel::embed_backward(const at::Tensor& inputs,
                                   const Streams& d_x) {
  const auto d = d_x.x1.add_(d_x.x2);  // [batch, length, d_model]
  add_embedding_gradient(gradient_sum(embedding_), inputs.flatten(),
                         d.flatten(0, 1), std::sqrt(double(d.size(2))));
  ngrams_.add_gradients(inputs, d);
  positions_.add_gradients(d.size(0) == 1 ? d[0] : d.sum(0));
}

LossSums LanguageModel::evaluate(const at::Tensor& tokens,
                                 const at::Tensor& loss_mask,
                                 const Pass& pass) const {
  const auto wanted = here(tokens);
  return read(head_.loss(outputs(wanted, pass), wanted, here(loss_mask)));
}

at::Tensor LanguageModel::losses(const at::Tensor& tokens,
                                 const Pass& pass) const {
  const auto wanted = here(tokens);
  return head_.losses(outputs(wanted, pass), wanted);
}

LossSums LanguageModel::train(const at::Tensor& tokens,
                              const at::Tensor& loss_mask, const Pass& pass,
                              double scale) {
  return read(add_gradients(tokens, loss_mask, pass, scale));
}

at::Tensor LanguageModel::add_gradients(const at::Tensor& tokens,
                                        const at::Tensor& loss_mask,
                                        const Pass& pass, double scale) {
  const at::NoGradGuard no_grad;
  const auto wanted = here(tokens);
  const auto inputs = shifted(wanted);
  auto y = stack_->forward(begin(inputs), pass);
  Streams d_y;
  const auto sums = head_.backward(y, wanted, here(loss_mask), scale, d_y);
  embed_backward(inputs, stack_->backward(std::move(y), std::move(d_y)));
  return sums;
}

at::Tensor LanguageModel::logits(const at::Tensor& tokens, const Pass& pass,
                                 std::vector<at::Tensor>* buckets) const {
  const at::NoGradGuard no_grad;
  return head_.logits(outputs(tokens, pass, buckets));
}

double LanguageModel::overflow(const at::Tensor& tokens,
                               const Pass& pass) const {
  std::vector<at::Tensor> buckets;
  outputs(tokens, pass, &buckets);
  double sum = 0;
  int64_t layers = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (!buckets[i].defined()) continue;
    sum += lsh_statistics(buckets[i], stack_->blocks()[i].attention.lsh())
               .overflow;
    ++layers;
  }
  return layers == 0 ? 0 : sum / double(layers);
}

void LanguageModel::zero_gradients() {
  for (auto& parameter : parameters()) {
    parameter.gradient().reset();
  }
}

}  // namespace reformer
