// Layers whose activations are kept: faster than rebuilding them, as long as
// they fit into memory.
#pragma once

#include "reformer/model/stack.h"

namespace reformer {

// What a block's gradients need of its forward pass.
struct EvaluatedBlock {
  EvaluatedAttention attention;
  EvaluatedAttention cross_attention;  // of a decoder
  std::vector<EvaluatedFeedForward> feed_forward;

  EvaluatedAttention& of(const AttentionLayer& layer) {
    return layer.reads_source() ? cross_attention : attention;
  }
};

// The function of ReversibleStack.
class StoredStack : public Stack {
 public:
  using Stack::Stack;

  Streams forward(Streams x, const Pass& pass) override;
  Streams backward(Streams y, Streams d_y) override;

 private:
  Pass pass_;
  std::vector<EvaluatedBlock> evaluated_;
};

// The ordinary Transformer: one stream, x1, to which both branches are added.
class ResidualStack : public StoredStack {
 public:
  using StoredStack::StoredStack;

  bool two_streams() const override { return false; }
};

}  // namespace reformer
