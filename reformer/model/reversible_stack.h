// Layers whose inputs are rebuilt from their outputs (paper Sec. 3).
#pragma once

#include "reformer/model/stack.h"

namespace reformer {

class ReversibleStack : public Stack {
 public:
  using Stack::Stack;

  Streams forward(Streams x, const Pass& pass) override;
  Streams backward(Streams y, Streams d_y) override;

  // The inputs of the last forward, rebuilt from its output alone: what
  // backward sees on its way. Consumes y.
  Streams rebuild(Streams y) const;

  // What forward kept, in bytes.
  int64_t bucket_bytes() const;

 private:
  Pass pass_;
  std::vector<at::Tensor> buckets_;  // a layer each; undefined where not LSH
};

}  // namespace reformer
