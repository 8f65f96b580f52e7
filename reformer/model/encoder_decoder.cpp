#include "reformer/model/encoder_decoder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "reformer/base/errors.h"
#include "reformer/model/overflow.h"
#include "reformer/model/parameter_gradients.h"
#include "reformer/ops/counter_dropout.h"

namespace reformer {
namespace {

constexpr const char* kSource = "source.";

const Config& with_encoder(const Config& config) {
  require(config.model.encoder_layers > 0,
          "model.encoder_layers: at least 1 is required of an "
          "encoder-decoder, got ",
          config.model.encoder_layers);
  return config;
}

TokenEmbedding source_embedding(const Config& config,
                                const TokenEmbedding& target,
                                ParameterStore& store) {
  if (config.model.share_embeddings) return {config, target, kSource, store};
  return {config, config.model.vocabulary, kSource, store};
}

// Positions do not see each other in the head, and those of all rows as one
// sequence are cut into parts of one size, however many rows there are.
Streams as_one_row(const Streams& y) {
  const auto row = [](const at::Tensor& x) {
    return x.view({1, -1, x.size(2)});
  };
  return {row(y.x1), row(y.x2)};
}

at::Tensor as_one_row(const at::Tensor& tokens) {
  return tokens.reshape({1, -1});
}

void require_source(const Batch& batch) {
  require(batch.source.defined() && batch.source.dim() == 2 &&
              batch.source.scalar_type() == at::kLong &&
              batch.source.size(1) >= 1 &&
              batch.source.size(0) == batch.tokens.size(0),
          "encoder-decoder: a source [", batch.tokens.size(0),
          ", source length] int64 is required, got ",
          batch.source.defined() ? "another" : "none");
  require(!batch.source_mask.defined() ||
              (batch.source_mask.sizes() == batch.source.sizes() &&
               batch.source_mask.scalar_type() == at::kBool),
          "encoder-decoder: source_mask must be bool of the source's sizes ",
          batch.source.sizes());
}

}  // namespace

EncoderDecoder::EncoderDecoder(const Config& config, const Placement& placement)
    : SequenceModel(with_encoder(config), placement),
      target_(config, config.model.vocabulary + 1, /*prefix=*/"", store()),
      source_(source_embedding(config, target_, store())),
      encoder_(make_stack(config, StackKind::kEncoder, store())),
      join_(encoder_->two_streams() ? Join::kMean : Join::kFirst),
      norm_{store().constant("encoder.norm.weight", {config.model.d_model}, 1),
            store().constant("encoder.norm.bias", {config.model.d_model}, 0),
            config.model.norm_epsilon},
      decoder_(make_stack(config, StackKind::kDecoder, store())),
      head_(config, join_, store(),
            config.model.share_embeddings ? target_.table() : at::Tensor()) {}

int64_t EncoderDecoder::block_count() const {
  return encoder_->count() + decoder_->count();
}

void EncoderDecoder::set_observer(BlockObserver* observer) {
  encoder_->set_observer(observer);
  decoder_->set_observer(observer);
}

// Undefined where nothing is padding, which faster attention takes; of a GPU's
// mask nobody looks, that would wait for it.
at::Tensor EncoderDecoder::known_mask(const at::Tensor& mask) const {
  if (!mask.defined() || (mask.is_cpu() && mask.all().item<bool>())) return {};
  return here(mask);
}

// Sites behind those of all branches.
at::Tensor EncoderDecoder::dropped(const at::Tensor& x, StackKind of,
                                   const Pass& pass) const {
  const int64_t branches = 2 * encoder_->count() + 3 * decoder_->count();
  const auto site =
      static_cast<uint32_t>(branches + (of == StackKind::kDecoder ? 1 : 0));
  return counter_dropout(x, dropout_of(pass, config().model.dropout, site));
}

Streams EncoderDecoder::begin_encoder(const at::Tensor& source,
                                      const Pass& pass) const {
  return encoder_->begin(
      dropped(embed_source(source), StackKind::kEncoder, pass));
}

Streams EncoderDecoder::begin_decoder(const at::Tensor& inputs,
                                      const Pass& pass) const {
  return decoder_->begin(dropped(embed(inputs, 0), StackKind::kDecoder, pass));
}

at::Tensor EncoderDecoder::encoder_output(const Streams& y) const {
  return layer_norm(joined(y, join_), norm_, placement().compute);
}

// d, of encoder_output(y), becomes that of y.
Streams EncoderDecoder::output_backward(const Streams& y,
                                        const at::Tensor& d) const {
  const auto normed =
      layer_norm_forward(joined(y, join_), norm_, placement().compute);
  const auto d_x = at::zeros_like(normed.x);
  add_norm_gradients(normed, norm_, d.to(placement().compute), d_x);
  const Streams d_y{at::empty_like(y.x1), join_ == Join::kFirst
                                              ? at::zeros_like(y.x2)
                                              : at::empty_like(y.x2)};
  split_gradient(d_x, join_, d_y);
  return d_y;
}

EncoderOutput EncoderDecoder::encode(const at::Tensor& source,
                                     const at::Tensor& mask,
                                     const Pass& pass) const {
  const at::NoGradGuard no_grad;
  Pass encoding = pass;
  encoding.mask = known_mask(mask);
  const auto y =
      encoder_->evaluate(begin_encoder(here(source), pass), encoding);
  return {encoder_output(y), encoding.mask};
}

Streams EncoderDecoder::outputs(const at::Tensor& tokens, const Pass& pass,
                                std::vector<at::Tensor>* buckets) const {
  const at::NoGradGuard no_grad;
  return decoder_->evaluate(begin_decoder(shifted(here(tokens)), pass), pass,
                            buckets);
}

// Of a batch's target, with a source that has been encoded.
Pass EncoderDecoder::decoding_pass(const Batch& batch,
                                   const EncoderOutput& source,
                                   const Pass& pass) const {
  Pass decoding = pass;
  decoding.mask = known_mask(batch.loss_mask);
  decoding.source = source;
  return decoding;
}

at::Tensor EncoderDecoder::logits(const at::Tensor& tokens,
                                  const EncoderOutput& source,
                                  const Pass& pass) const {
  const at::NoGradGuard no_grad;
  Pass decoding = pass;
  decoding.source = source;
  return head_.logits(outputs(tokens, decoding));
}

LossSums EncoderDecoder::evaluate(const Batch& batch, const Pass& pass) const {
  require_source(batch);
  const auto wanted = here(batch.tokens);
  const auto source = encode(batch.source, batch.source_mask, pass);
  const auto y = outputs(wanted, decoding_pass(batch, source, pass));
  return read(head_.loss(as_one_row(y), as_one_row(wanted),
                         as_one_row(here(batch.loss_mask))));
}

at::Tensor EncoderDecoder::add_gradients(const Batch& batch, const Pass& pass,
                                         double scale) {
  const at::NoGradGuard no_grad;
  require_source(batch);
  const auto source = here(batch.source);
  const auto wanted = here(batch.tokens);
  const auto inputs = shifted(wanted);

  Pass encoding = pass;
  encoding.mask = known_mask(batch.source_mask);
  auto encoded = encoder_->forward(begin_encoder(source, pass), encoding);
  auto decoding =
      decoding_pass(batch,
                    {encoder_output(encoded), encoding.mask,
                     at::zeros(encoded.x1.sizes(), encoded.x1.options())},
                    pass);
  auto y = decoder_->forward(begin_decoder(inputs, pass), decoding);

  Streams d_y;
  const auto sums =
      head_.backward(as_one_row(y), as_one_row(wanted),
                     as_one_row(here(batch.loss_mask)), scale, d_y);
  d_y = {d_y.x1.view_as(y.x1), d_y.x2.view_as(y.x2)};
  auto d_x = decoder_->backward(std::move(y), std::move(d_y));
  target_.add_gradients(
      inputs, dropped(d_x.x1.add_(d_x.x2), StackKind::kDecoder, pass));

  auto d_encoded = output_backward(encoded, decoding.source.gradient);
  decoding.source = {};
  d_x = encoder_->backward(std::move(encoded), std::move(d_encoded));
  source_.add_gradients(
      source, dropped(d_x.x1.add_(d_x.x2), StackKind::kEncoder, pass));
  return sums;
}

double EncoderDecoder::overflow(const Batch& batch, const Pass& pass) const {
  const at::NoGradGuard no_grad;
  require_source(batch);
  Pass encoding = pass;
  encoding.mask = known_mask(batch.source_mask);
  OverflowMean overflow;
  std::vector<at::Tensor> buckets;
  const auto y = encoder_->evaluate(begin_encoder(here(batch.source), pass),
                                    encoding, &buckets);
  overflow.add(buckets, *encoder_);
  buckets.clear();
  outputs(batch.tokens,
          decoding_pass(batch, {encoder_output(y), encoding.mask}, pass),
          &buckets);
  overflow.add(buckets, *decoder_);
  return overflow.mean();
}

}  // namespace reformer
