#include "reformer/model/language_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include <algorithm>

#include "reformer/base/errors.h"
#include "reformer/distributed/communicator.h"
#include "reformer/distributed/ranks.h"
#include "reformer/model/overflow.h"

namespace reformer {
namespace {

const Config& of_language(const Config& config) {
  require(config.model.encoder_layers == 0,
          "model.encoder_layers: 0 is required of a language model, got ",
          config.model.encoder_layers);
  return config;
}

}  // namespace

LanguageModel::LanguageModel(const Config& config, const Placement& placement)
    : SequenceModel(of_language(config), placement),
      embedding_(config, config.model.vocabulary + 1, /*prefix=*/"", store()),
      ngrams_(config, store()),
      ngram_buckets_(config),
      stack_(make_stack(config, StackKind::kDecoder, store())),
      head_(config, stack_->two_streams() ? Join::kConcat : Join::kFirst,
            store()) {}

int64_t LanguageModel::context() const {
  return std::max(ngrams_.context(), ngram_buckets_.context());
}

at::Tensor LanguageModel::with_context(const at::Tensor& inputs,
                                       int64_t context) const {
  if (context == 0) return inputs;
  const auto before =
      at::full({inputs.size(0), context}, start_token(), inputs.options());
  return at::cat({before, inputs}, 1);
}

at::Tensor LanguageModel::next_ngrams(const at::Tensor& recent) const {
  const int64_t needed = ngram_buckets_.context() + 1;
  return ngram_buckets_.of(recent.narrow(1, recent.size(1) - needed, needed));
}

Pass LanguageModel::with_ngrams(Pass pass, const at::Tensor& inputs) const {
  pass.ngrams =
      ngram_buckets_.of(with_context(inputs, ngram_buckets_.context()));
  return pass;
}

at::Tensor LanguageModel::embed(const at::Tensor& inputs, int64_t at,
                                int64_t n) const {
  const auto x = embedding_.embed(inputs.narrow(1, at, n), at);
  const auto ngrams = ngrams_.encode(inputs, at, n);
  return ngrams.defined() ? x + ngrams : x;
}

at::Tensor LanguageModel::embed_next(const at::Tensor& recent,
                                     const at::Tensor& positions) const {
  const auto x =
      embedding_.embed_at(recent.select(1, recent.size(1) - 1), positions);
  const int64_t needed = ngrams_.context() + 1;
  const auto ngrams =
      ngrams_.encode_last(recent.narrow(1, recent.size(1) - needed, needed));
  return ngrams.defined() ? x + ngrams : x;
}

struct LanguageModel::Part {
  Share share;
  // Of [batch, length, ...], these positions.
  at::Tensor of(const at::Tensor& x) const {
    return x.narrow(1, share.begin, share.count());
  }
  Pass of(Pass pass) const {
    pass.first_position = share.begin;
    return pass;
  }
};

LanguageModel::Part LanguageModel::part_of(int64_t length) const {
  const auto* ranks = placement().sequence;
  if (ranks == nullptr) return {{0, length}};
  require(length % ranks->size() == 0, "train.sequence_parallel: a divisor of ",
          length, ", the positions of a sequence, is required, got ",
          ranks->size());
  return {share_of(length, ranks->rank(), ranks->size())};
}

Streams LanguageModel::begin(const at::Tensor& inputs, const Part& part) const {
  const at::NoGradGuard no_grad;
  return stack_->begin(embed(inputs, part.share.begin, part.share.count()));
}

Streams LanguageModel::outputs(const at::Tensor& tokens, const Pass& pass,
                               std::vector<at::Tensor>* buckets) const {
  const auto inputs = shifted(here(tokens));
  const auto part = part_of(inputs.size(1));
  return stack_->evaluate(begin(inputs, part),
                          part.of(with_ngrams(pass, inputs)), buckets);
}

at::Tensor LanguageModel::attention_input(const at::Tensor& tokens,
                                          const Pass& pass,
                                          int64_t block) const {
  const auto inputs = shifted(here(tokens));
  const auto part = part_of(inputs.size(1));
  const auto x =
      stack_->evaluate(begin(inputs, part), part.of(with_ngrams(pass, inputs)),
                       /*buckets=*/nullptr, block);
  return stack_->two_streams() ? x.x2 : x.x1;
}

LossSums LanguageModel::evaluate(const at::Tensor& tokens,
                                 const at::Tensor& loss_mask,
                                 const Pass& pass) const {
  const auto wanted = here(tokens);
  const auto y = outputs(wanted, pass);
  const auto part = part_of(wanted.size(1));
  return read(head_.loss(y, part.of(wanted), part.of(here(loss_mask))));
}

at::Tensor LanguageModel::losses(const at::Tensor& tokens,
                                 const Pass& pass) const {
  const auto wanted = here(tokens);
  const auto y = outputs(wanted, pass);
  return head_.losses(y, part_of(wanted.size(1)).of(wanted));
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
  const auto part = part_of(wanted.size(1));
  auto y =
      stack_->forward(begin(inputs, part), part.of(with_ngrams(pass, inputs)));
  Streams d_y;
  const auto sums =
      head_.backward(y, part.of(wanted), part.of(here(loss_mask)), scale, d_y);
  const auto d_x = stack_->backward(std::move(y), std::move(d_y));
  const auto d = d_x.x1.add_(d_x.x2);  // [batch, length, d_model]
  embedding_.add_gradients(part.of(inputs), d, part.share.begin);
  ngrams_.add_gradients(inputs, d, part.share.begin);
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
  OverflowMean overflow;
  overflow.add(buckets, *stack_, placement().sequence);
  return overflow.mean();
}

LanguageModel& language_model_of(SequenceModel& model) {
  auto* found = dynamic_cast<LanguageModel*>(&model);
  require(found != nullptr,
          "model.encoder_layers: 0, a language model, is required for this, "
          "got ",
          model.config().model.encoder_layers);
  return *found;
}

}  // namespace reformer
