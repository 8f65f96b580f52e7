// The position-wise feed-forward: the other branch of a block.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "reformer/config/config.h"
#include "reformer/model/parameter_store.h"
#include "reformer/model/parts.h"
#include "reformer/model/pass.h"
#include "reformer/ops/layer_norm.h"
#include "reformer/ops/linear.h"

namespace reformer {

// Positions of `batch` sequences that are taken at once; where `sharing` ranks
// share them, each takes so many times fewer.
int64_t feed_forward_chunk(const ModelConfig& model, int64_t batch,
                           at::DeviceType device = at::kCPU,
                           int64_t sharing = 1);

// What the gradients need of an evaluation of a part of the positions.
struct EvaluatedFeedForward {
  Normed normed;      // the input's
  at::Tensor inner;   // [batch, part, d_ff] before the activation; undefined
                      // where keeps_result(activation)
  at::Tensor active;  // likewise after it
};

class FeedForward {
 public:
  // name: of its parameters, "blocks.0.feed_forward."; branch: which of the
  // model's it is, for dropout.
  FeedForward(const Config& config, const std::string& name, uint32_t branch,
              ParameterStore& store);

  //   x        [batch, part of the length, d_model], from first_position on
  //   returns  [batch, part of the length, d_model]: Dropout(W2 act(W1 LN(x)))
  //
  // Positions do not see each other, so any part gives what the whole would.
  // What takes whole sequences below takes parts of chunk() positions, so that
  // their d_ff wide activations never exist, unless they are to be kept.
  at::Tensor forward(const at::Tensor& x, const Pass& pass,
                     int64_t first_position) const;

  // y += forward(x) in evaluation, without gradients.
  void add_to(const at::Tensor& y, const at::Tensor& x) const;

  // y += scale forward(x) of whole sequences, without gradients.
  //
  //   y, x  [batch, length, d_model], contiguous
  void add_to(const at::Tensor& y, const at::Tensor& x, const Pass& pass,
              double scale) const;

  // Returns sum + forward(x) of whole sequences, and what add_gradients needs,
  // part by part. Both contiguous.
  at::Tensor evaluate_and_add(const at::Tensor& sum, const at::Tensor& x,
                              const Pass& pass,
                              std::vector<EvaluatedFeedForward>& parts) const;

  // Adds the gradients of the parameters, and that of x to d_x. d_y is that of
  // the sum, and may be the same tensor. Both contiguous.
  void add_gradients(std::vector<EvaluatedFeedForward> parts,
                     const at::Tensor& d_y, const at::Tensor& d_x,
                     const Pass& pass) const;

  // Reverses y += forward(x), and adds the gradients likewise: one evaluation
  // serves both. All four contiguous.
  void reverse(const ReversibleBranch& branch, const Pass& pass) const;

  int64_t chunk(int64_t batch) const;

 private:
  // In the type of matmuls, converted once for all parts.
  struct Matrices {
    LinearWeights in;
    LinearWeights out;
  };
  Matrices rounded() const;

  bool drops(const Pass& pass) const { return pass.training && dropout_ > 0; }
  Dropout dropout(const Pass& pass, int64_t first_position) const {
    return dropout_of(pass, dropout_, branch_, first_position);
  }
  at::Tensor flat(const at::Tensor& x, const Pass& pass) const;
  template <class Body>
  void for_each_flat_part(const at::Tensor& x, const Pass& pass,
                          const Body& body) const;
  at::Tensor output(const at::Tensor& active, const LinearWeights& out,
                    const Pass& pass, int64_t first_position) const;
  EvaluatedFeedForward evaluate(const at::Tensor& x,
                                const LinearWeights& in) const;
  void add_part_gradients(EvaluatedFeedForward part, const at::Tensor& d_y,
                          const at::Tensor& d_x, const Matrices& matrices,
                          const Pass& pass, int64_t first_position) const;

  uint32_t branch_;
  ModelConfig model_;
  Activation activation_;
  double dropout_;
  Placement placement_;
  NormWeights norm_;       // of [d_model]
  at::Tensor in_weight_;   // [d_ff, d_model]
  at::Tensor in_bias_;     // [d_ff]
  at::Tensor out_weight_;  // [d_model, d_ff]
  at::Tensor out_bias_;    // [d_model]
};

}  // namespace reformer
