// A model that is trained on batches: what optimizers, checkpoints, offload and
// the training loop know of a language model or an encoder-decoder.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "reformer/config/config.h"
#include "reformer/model/batch.h"
#include "reformer/model/block_observer.h"
#include "reformer/model/language_head.h"
#include "reformer/model/parameter_store.h"
#include "reformer/model/pass.h"

namespace reformer {

class SequenceModel {
 public:
  virtual ~SequenceModel() = default;
  SequenceModel(const SequenceModel&) = delete;
  SequenceModel& operator=(const SequenceModel&) = delete;

  // Tensors of a batch may be on any device. Inputs are the batch's tokens
  // shifted right behind a start token, so every token is predicted exactly
  // once, from those before it (and the source).

  virtual LossSums evaluate(const Batch& batch, const Pass& pass) const = 0;

  // Likewise, and adds the gradients of scale * (sum of losses) to those of the
  // parameters (Parameter::gradient); with train.label_smoothing the gradients
  // of smoothed losses. Nothing waits for the device: the sums stay there, [3]
  // float64, for reformer::read.
  virtual at::Tensor add_gradients(const Batch& batch, const Pass& pass,
                                   double scale) = 0;

  // The share of same-bucket pairs that the windows of LSH layers cut off, the
  // mean over those layers; 0 where there are none. A forward pass.
  virtual double overflow(const Batch& batch, const Pass& pass) const = 0;

  // Of all stacks; block_of a parameter's name is less.
  virtual int64_t block_count() const = 0;

  // Told of every block that a pass comes to; null: nobody is.
  virtual void set_observer(BlockObserver* observer) = 0;

  void zero_gradients();
  std::vector<Parameter>& parameters() { return store_.parameters(); }
  const std::vector<Parameter>& parameters() const {
    return store_.parameters();
  }
  const Config& config() const { return config_; }
  const Placement& placement() const { return store_.placement(); }
  int64_t start_token() const { return config_.model.vocabulary; }

 protected:
  // Throws Error for an impossible config.
  SequenceModel(const Config& config, const Placement& placement);

  at::Tensor here(const at::Tensor& x) const;  // on the model's device

  // The tokens that each of `tokens` [batch, length] is predicted from, behind
  // the start token.
  at::Tensor shifted(const at::Tensor& tokens) const;

  ParameterStore& store() { return store_; }

 private:
  Config config_;
  ParameterStore store_;
};

// The model that config.model describes: by model.encoder_layers a language
// model or an encoder-decoder. Parameters are drawn from config.train.seed, the
// same on every device. Throws Error for an impossible config.
std::unique_ptr<SequenceModel> make_model(const Config& config,
                                          const Placement& placement = {});

}  // namespace reformer
