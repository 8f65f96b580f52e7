// Layers whose activations are kept, as automatic differentiation does.
#pragma once

#include "reformer/model/stack.h"

namespace reformer {

// The function of ReversibleStack.
class StoredStack : public Stack {
 public:
  using Stack::Stack;

  Streams evaluate(Streams x, const Pass& pass,
                   std::vector<at::Tensor>* buckets) const override;
  Streams forward(Streams x, const Pass& pass) override;
  Streams backward(Streams y, Streams d_y) override;

 protected:
  // One block; leaves the buckets it used.
  virtual Streams apply(const Block& block, const Streams& x, const Pass& pass,
                        at::Tensor& buckets) const;

 private:
  Streams run(Streams x, const Pass& pass,
              std::vector<at::Tensor>* buckets) const;

  Streams input_;
  Streams output_;
};

// The ordinary Transformer: one stream, x1.
class ResidualStack : public StoredStack {
 public:
  using StoredStack::StoredStack;

  bool two_streams() const override { return false; }

 protected:
  Streams apply(const Block& block, const Streams& x, const Pass& pass,
                at::Tensor& buckets) const override;
};

}  // namespace reformer
