// An encoder-decoder: reads a source, and predicts each token of a target from
// those before it and the source (the paper's Table 4).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "reformer/config/config.h"
#include "reformer/model/language_head.h"
#include "reformer/model/sequence_model.h"
#include "reformer/model/stack.h"
#include "reformer/model/token_embedding.h"
#include "reformer/ops/layer_norm.h"

namespace reformer {

// Two stacks of the blocks that a language model has. The encoder's sees all of
// the source; its output e = LN(joined streams) is kept once. The decoder's has
// a third branch in each block, cross-attention to e, whose gradients with
// respect to e add up on the decoder's way back, before the encoder's way back
// begins.
//
// Padding, at the end of rows of source and target, changes nothing of what a
// row gives: no real position sees it, and its losses do not count.
class EncoderDecoder : public SequenceModel {
 public:
  // Parameters drawn from config.train.seed, the same on every device. Throws
  // Error for an impossible config, and where there is no encoder.
  explicit EncoderDecoder(const Config& config,
                          const Placement& placement = {});

  // Of batches with a source.
  LossSums evaluate(const Batch& batch, const Pass& pass) const override;
  at::Tensor add_gradients(const Batch& batch, const Pass& pass,
                           double scale) override;
  double overflow(const Batch& batch, const Pass& pass) const override;
  int64_t block_count() const override;
  void set_observer(BlockObserver* observer) override;

  //   source  [batch, source length] int64 in [0, vocabulary), on any device
  //   mask    [batch, source length] bool: real tokens; undefined: all are
  //
  // In evaluation or, by `pass`, as training does it. Without gradients.
  EncoderOutput encode(const at::Tensor& source, const at::Tensor& mask,
                       const Pass& pass) const;

  // Logits [batch, length, vocabulary] of every token's prediction, from those
  // before it; tokens [batch, length] int64. Without gradients.
  at::Tensor logits(const at::Tensor& tokens, const EncoderOutput& source,
                    const Pass& pass) const;

  // What the decoder reads, of inputs as TokenEmbedding takes them: tokens of
  // the target, the first of which follows the start token. In training with
  // dropout, which is not in here.
  at::Tensor embed(const at::Tensor& inputs, int64_t first_position) const {
    return target_.embed(inputs, first_position);
  }
  at::Tensor embed_at(const at::Tensor& inputs,
                      const at::Tensor& positions) const {
    return target_.embed_at(inputs, positions);
  }

  // The same of the encoder.
  at::Tensor embed_source(const at::Tensor& source) const {
    return source_.embed(source, /*first_position=*/0);
  }

  // LN(joined streams): what cross-attention reads of the encoder's last block,
  // in the type of matmuls. Differentiable.
  at::Tensor encoder_output(const Streams& y) const;

  // Dropout of what a stack reads, as training has it. Differentiable.
  at::Tensor dropped(const at::Tensor& x, StackKind of, const Pass& pass) const;

  const Stack& encoder() const { return *encoder_; }
  const Stack& decoder() const { return *decoder_; }
  const LanguageHead& head() const { return head_; }
  const Positions& positions() const { return target_.positions(); }
  const Positions& source_positions() const { return source_.positions(); }

 private:
  at::Tensor known_mask(const at::Tensor& mask) const;
  Streams begin_encoder(const at::Tensor& source, const Pass& pass) const;
  Streams begin_decoder(const at::Tensor& inputs, const Pass& pass) const;
  Pass decoding_pass(const Batch& batch, const EncoderOutput& source,
                     const Pass& pass) const;
  Streams outputs(const at::Tensor& tokens, const Pass& pass,
                  std::vector<at::Tensor>* buckets = nullptr) const;
  Streams output_backward(const Streams& y, const at::Tensor& d) const;

  TokenEmbedding target_;  // the last token: start
  TokenEmbedding source_;
  std::unique_ptr<Stack> encoder_;
  Join join_;
  NormWeights norm_;  // of [d_model]
  std::unique_ptr<Stack> decoder_;
  LanguageHead head_;
};

}  // namespace reformer
