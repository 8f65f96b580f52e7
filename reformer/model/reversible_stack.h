// Layers whose inputs are rebuilt from their outputs (paper Sec. 3).
#pragma once

#include "reformer/model/stack.h"

namespace reformer {

class ReversibleStack : public Stack {
 public:
  using Stack::Stack;

  Streams forward(Streams x, const Pass& pass) override;

  // What it is given as y becomes the input of forward, rebuilt.
  Streams backward(Streams y, Streams d_y) override;

 private:
  Pass pass_;
  std::vector<at::Tensor> buckets_;  // a layer each; undefined where not LSH
};

}  // namespace reformer
