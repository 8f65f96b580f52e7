// A language model: embeds tokens, runs the stack, predicts each token from
// those before it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "reformer/config/config.h"
#include "reformer/model/language_head.h"
#include "reformer/model/ngram_buckets.h"
#include "reformer/model/ngram_embedding.h"
#include "reformer/model/sequence_model.h"
#include "reformer/model/stack.h"
#include "reformer/model/token_embedding.h"

namespace reformer {

class LanguageModel : public SequenceModel {
 public:
  // Parameters drawn from config.train.seed, the same on every device. Throws
  // Error for an impossible config, and for that of an encoder-decoder.
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

  // What the head reads to predict each of the tokens (with Placement::sequence
  // of this rank's positions, as losses and logits). Likewise with buckets.
  Streams outputs(const at::Tensor& tokens, const Pass& pass,
                  std::vector<at::Tensor>* buckets = nullptr) const;

  // What the attention of block `block` reads, [batch, length, d_model].
  at::Tensor attention_input(const at::Tensor& tokens, const Pass& pass,
                             int64_t block) const;

  double overflow(const at::Tensor& tokens, const Pass& pass) const;

  // The same of batches.
  LossSums evaluate(const Batch& batch, const Pass& pass) const override {
    return evaluate(batch.tokens, batch.loss_mask, pass);
  }
  at::Tensor add_gradients(const Batch& batch, const Pass& pass,
                           double scale) override {
    return add_gradients(batch.tokens, batch.loss_mask, pass, scale);
  }
  double overflow(const Batch& batch, const Pass& pass) const override {
    return overflow(batch.tokens, pass);
  }

  int64_t block_count() const override { return stack_->count(); }
  void set_observer(BlockObserver* observer) override {
    stack_->set_observer(observer);
  }

  Stack& stack() { return *stack_; }
  const Stack& stack() const { return *stack_; }
  const Positions& positions() const { return embedding_.positions(); }
  const LanguageHead& head() const { return head_; }

  // What the stack reads: [batch, n, d_model] of the n positions from `at` on,
  // of inputs [batch, length] int64. Differentiable.
  at::Tensor embed(const at::Tensor& inputs, int64_t at, int64_t n) const;

  // [n, d_model] of the next input of n rows, each at a position of its own:
  //   recent     [n, context() + 1] int64: the last inputs of each
  //   positions  [n] int64 of the last one
  // both on the model's device, and nothing waits for it.
  at::Tensor embed_next(const at::Tensor& recent,
                        const at::Tensor& positions) const;

  // Inputs before a position that it is told of: 0 without n-grams. Start
  // tokens stand before the first.
  int64_t context() const;
  at::Tensor with_context(const at::Tensor& inputs, int64_t context) const;

  // The pass with what n-grams of `inputs` [batch, length] tell its layers.
  Pass with_ngrams(Pass pass, const at::Tensor& inputs) const;

  // The same of the inputs that `tokens` are predicted from.
  Pass pass_over(const at::Tensor& tokens, const Pass& pass) const {
    return with_ngrams(pass, shifted(here(tokens)));
  }

  // The same of the last inputs alone: [n, n-grams, 1] of embed_next's
  // `recent`; undefined without n-grams.
  at::Tensor next_ngrams(const at::Tensor& recent) const;

 private:
  // Of ranks that share sequences each has a part of the positions, else all:
  // what goes through the stack, and what the head wants of it.
  struct Part;
  Part part_of(int64_t length) const;
  Streams begin(const at::Tensor& inputs, const Part& part) const;

  TokenEmbedding embedding_;  // the last token: start
  NgramEmbedding ngrams_;
  NgramBuckets ngram_buckets_;
  std::unique_ptr<Stack> stack_;
  LanguageHead head_;
};

// The same model; throws Error where it is an encoder-decoder.
LanguageModel& language_model_of(SequenceModel& model);

}  // namespace reformer
