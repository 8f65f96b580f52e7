// A language model: embeds tokens, runs the stack, predicts each token from
// those before it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "reformer/config/config.h"
#include "reformer/model/language_head.h"
#include "reformer/model/ngram_embedding.h"
#include "reformer/model/positions.h"
#include "reformer/model/stack.h"

namespace reformer {

class LanguageModel {
 public:
  // Parameters drawn from config.train.seed, the same on every device. Throws
  // Error for an impossible config.
  explicit LanguageModel(const Config& config, const Placement& placement = {});

  //   tokens  [batch, length] int64 in [0, vocabulary), on any device
  //   loss_mask  [batch, length] bool: which tokens count, likewise
  //
  // Inputs are the tokens shifted right behind a start token, so every token
  // is predicted exactly once, from those before it.
  LossSums evaluate(const at::Tensor& tokens, const at::Tensor& loss_mask,
                    const Pass& pass) const;

  // The loss of every token, in nats, [batch, length] on the model's device.
  at::Tensor losses(const at::Tensor& tokens, const Pass& pass) const;

  // Likewise, and adds the gradients of scale * (sum of losses) to those of the
  // parameters (Parameter::gradient).
  LossSums train(const at::Tensor& tokens, const at::Tensor& loss_mask,
                 const Pass& pass, double scale);

  // The same, but nothing waits for the device: the sums stay there, [3]
  // float64, for reformer::read.
  at::Tensor add_gradients(const at::Tensor& tokens,
                           const at::Tensor& loss_mask, const Pass& pass,
                           double scale);

  // Logits [batch, length, vocabulary] of every token's prediction. `buckets`,
  // where given, receives what each layer hashed to.
  at::Tensor logits(const at::Tensor& tokens, const Pass& pass,
                    std::vector<at::Tensor>* buckets = nullptr) const;

  // What the head reads to predict each of the tokens. Likewise with buckets.
  Streams outputs(const at::Tensor& tokens, const Pass& pass,
                  std::vector<at::Tensor>* buckets = nullptr) const;

  // What the attention of block `block` reads, [batch, length, d_model].
  at::Tensor attention_input(const at::Tensor& tokens, const Pass& pass,
                             int64_t block) const;

  // The share of same-bucket pairs that the windows of LSH layers cut off, the
  // mean over those layers; 0 where there are none. A forward pass.
  double overflow(const at::Tensor& tokens, const Pass& pass) const;

  void zero_gradients();
  std::vector<Parameter>& parameters() { return store_.parameters(); }
  const std::vector<Parameter>& parameters() const {
    return store_.parameters();
  }
  const Config& config() const { return config_; }
  const Placement& placement() const { return store_.placement(); }
  Stack& stack() { return *stack_; }
  const Stack& stack() const { return *stack_; }
  const Positions& positions() const { return positions_; }
  const LanguageHead& head() const { return head_; }
  int64_t start_token() const { return config_.model.vocabulary; }

  // What the stack reads: [batch, n, d_model] of the n positions from `at` on,
  // of inputs [batch, length] int64. Differentiable.
  at::Tensor embed(const at::Tensor& inputs, int64_t at, int64_t n) const;

  // [n, d_model] of the next input of n rows, each at a position of its own:
  //   recent     [n, ngrams().context() + 1] int64: the last inputs of each
  //   positions  [n] int64 of the last one
  // both on the model's device, and nothing waits for it.
  at::Tensor embed_next(const at::Tensor& recent,
                        const at::Tensor& positions) const;
  const NgramEmbedding& ngrams() const { return ngrams_; }

 private:
  at::Tensor here(const at::Tensor& x) const;  // on the model's device
  at::Tensor shifted(const at::Tensor& tokens) const;
  Streams begin(const at::Tensor& inputs) const;
  at::Tensor embed_with(const at::Tensor& inputs, const at::Tensor& ngrams,
                        const at::Tensor& positions) const;
  void embed_backward(const at::Tensor& inputs, const Streams& d_x);

  Config config_;
  ParameterStore store_;
  at::Tensor embedding_;  // [vocabulary + 1, d_model]; the last: start
  NgramEmbedding ngrams_;
  Positions positions_;
  std::unique_ptr<Stack> stack_;
  LanguageHead head_;
};

}  // namespace reformer
