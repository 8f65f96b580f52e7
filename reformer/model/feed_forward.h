// The position-wise feed-forward: the other branch of a block.
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/core/config.h"
#include "reformer/model/parameter_store.h"
#include "reformer/model/pass.h"

namespace reformer {

// Positions of `batch` sequences that are taken at once.
int64_t feed_forward_chunk(const ModelConfig& model, int64_t batch,
                           at::DeviceType device = at::kCPU);

class FeedForward {
 public:
  FeedForward(const Config& config, int64_t layer, ParameterStore& store);

  //   x        [batch, part of the length, d_model], from first_position on
  //   returns  [batch, part of the length, d_model]: Dropout(W2 act(W1 LN(x)))
  //
  // Positions do not see each other, so any part gives what the whole would;
  // the caller takes parts of chunk() positions, so that the d_ff wide
  // activations of a whole sequence never exist.
  at::Tensor forward(const at::Tensor& x, const Pass& pass,
                     int64_t first_position) const;

  // y += forward(x) in evaluation, without gradients.
  void add_to(const at::Tensor& y, const at::Tensor& x) const;

  int64_t chunk(int64_t batch) const;

 private:
  int64_t layer_;
  ModelConfig model_;
  bool gelu_;
  double dropout_;
  Placement placement_;
  at::Tensor norm_weight_;  // [d_model]
  at::Tensor norm_bias_;    // [d_model]
  at::Tensor in_weight_;    // [d_ff, d_model]
  at::Tensor in_bias_;      // [d_ff]
  at::Tensor out_weight_;   // [d_model, d_ff]
  at::Tensor out_bias_;     // [d_model]
};

}  // namespace reformer
