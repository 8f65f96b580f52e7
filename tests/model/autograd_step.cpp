#include "tests/model/autograd_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <torch/csrc/autograd/autograd.h>

namespace reformer {
namespace {

std::vector<at::Tensor> gradients_of(const at::Tensor& loss,
                                     const SequenceModel& model) {
  std::vector<at::Tensor> values;
  for (const auto& parameter : model.parameters()) {
    values.push_back(parameter.value);
  }
  return torch::autograd::grad({loss}, values);
}

at::Tensor behind_start(const SequenceModel& model, const at::Tensor& tokens) {
  const auto start =
      at::full({tokens.size(0), 1}, model.start_token(), tokens.options());
  return at::cat({start, tokens.narrow(1, 0, tokens.size(1) - 1)}, 1);
}

at::Tensor attended(const AttentionLayer& layer, const at::Tensor& x,
                    const Pass& pass) {
  at::Tensor buckets;
  return layer.forward(x, pass, buckets);
}

at::Tensor fed(const FeedForward& layer, const at::Tensor& x,
               const Pass& pass) {
  return layer.forward(x, pass, /*first_position=*/0);
}

// Encoder blocks: Y1 = X1 + Attention(X2), Y2 = X2 + FeedForward(Y1).
Streams encoded(const EncoderDecoder& model, Streams x, const Pass& pass) {
  for (const auto& block : model.encoder().blocks()) {
    if (model.encoder().two_streams()) {
      x.x1 = x.x1 + attended(block.attention, x.x2, pass);
      x.x2 = x.x2 + fed(block.feed_forward, x.x1, pass);
    } else {
      x.x1 = x.x1 + attended(block.attention, x.x1, pass);
      x.x1 = x.x1 + fed(block.feed_forward, x.x1, pass);
    }
  }
  return x;
}

// Decoder blocks: a = X1 + Attention(X2), b = X2 + CrossAttention(a),
// c = a + FeedForward(b); the next block's X1 is b, its X2 c.
Streams decoded(const EncoderDecoder& model, Streams x, const Pass& pass) {
  for (const auto& block : model.decoder().blocks()) {
    if (model.decoder().two_streams()) {
      const auto a = x.x1 + attended(block.attention, x.x2, pass);
      const auto b = x.x2 + attended(*block.cross_attention, a, pass);
      const auto c = a + fed(block.feed_forward, b, pass);
      x = {b, c};
    } else {
      x.x1 = x.x1 + attended(block.attention, x.x1, pass);
      x.x1 = x.x1 + attended(*block.cross_attention, x.x1, pass);
      x.x1 = x.x1 + fed(block.feed_forward, x.x1, pass);
    }
  }
  return x;
}

}  // namespace

std::vector<at::Tensor> autograd_gradients(const LanguageModel& model,
                                           const at::Tensor& tokens,
                                           const Pass& given, double scale) {
  const at::AutoGradMode record(true);
  const auto wanted = tokens.to(model.placement().device);
  const auto inputs = behind_start(model, wanted);
  const auto pass = model.with_ngrams(given, inputs);
  const auto x = model.embed(inputs, 0, inputs.size(1));
  Streams y{x, x};
  for (const auto& block : model.stack().blocks()) {
    at::Tensor buckets;
    const auto add_attention = [&](const at::Tensor& to, const at::Tensor& x) {
      return to + block.attention.forward(x, pass, buckets);
    };
    const auto add_feed_forward = [&](const at::Tensor& to,
                                      const at::Tensor& x) {
      return to + block.feed_forward.forward(x, pass, /*first_position=*/0);
    };
    if (model.stack().two_streams()) {
      y.x1 = add_attention(y.x1, y.x2);
      y.x2 = add_feed_forward(y.x2, y.x1);
    } else {
      y.x1 = add_attention(y.x1, y.x1);
      y.x1 = add_feed_forward(y.x1, y.x1);
    }
  }
  const auto log_p = at::log_softmax(model.head().logits(y).flatten(0, 1), 1);
  const auto loss =
      at::nll_loss(log_p, wanted.flatten(), {}, at::Reduction::Sum);
  return gradients_of(loss * scale, model);
}

std::vector<at::Tensor> autograd_gradients(const EncoderDecoder& model,
                                           const Batch& batch, const Pass& pass,
                                           double scale) {
  const at::AutoGradMode record(true);
  const auto device = model.placement().device;
  const auto wanted = batch.tokens.to(device);
  const auto read = [&](const at::Tensor& x, StackKind kind) {
    const auto dropped = model.dropped(x, kind, pass);
    return Streams{dropped, dropped};
  };
  Pass with_source = pass;
  with_source.mask = batch.source_mask.to(device);
  const auto source = batch.source.to(device);
  const auto e =
      encoded(model, read(model.embed_source(source), StackKind::kEncoder),
              with_source);
  with_source.source = {model.encoder_output(e), with_source.mask};
  with_source.mask = batch.loss_mask.to(device);
  const auto y = decoded(
      model,
      read(model.embed(behind_start(model, wanted), 0), StackKind::kDecoder),
      with_source);
  const auto log_p = at::log_softmax(model.head().logits(y), 2);
  const double smoothing = model.config().train.label_smoothing;
  const auto losses =
      log_p.gather(2, wanted.unsqueeze(2)).squeeze(2) * (smoothing - 1) -
      log_p.mean(2) * smoothing;
  return gradients_of((losses * batch.loss_mask.to(device)).sum() * scale,
                      model);
}

}  // namespace reformer
