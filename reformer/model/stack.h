// The layers of a model, and three ways through them (paper Sec. 3).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "reformer/model/block.h"
#include "reformer/model/block_observer.h"

namespace reformer {

// The two residual streams, [batch, length, d_model] each.
struct Streams {
  at::Tensor x1;
  at::Tensor x2;
};

// A stack computes its output without keeping anything it need not keep, and
// then, told the gradient of the output, adds the parameters' gradients to
// theirs and returns that of the input. forward consumes its argument, backward
// both the output that forward returned and the gradient.
class Stack {
 public:
  explicit Stack(std::vector<Block> blocks) : blocks_(std::move(blocks)) {}
  virtual ~Stack() = default;

  // For evaluation: keeps nothing, consumes x. `buckets`, where given, receives
  // what each layer hashed to, undefined where it is not LSH.
  virtual Streams evaluate(Streams x, const Pass& pass,
                           std::vector<at::Tensor>* buckets) const = 0;

  // For training: keeps what `backward` needs, until then.
  virtual Streams forward(Streams x, const Pass& pass) = 0;
  virtual Streams backward(Streams y, Streams d_y) = 0;

  // How the head reads the output: concat(Y1, Y2), or the one stream there is.
  virtual bool two_streams() const { return true; }

  const std::vector<Block>& blocks() const { return blocks_; }

  // Told of every block that a pass comes to, where the stack is reversible;
  // null: nobody is.
  void set_observer(BlockObserver* observer) { observer_ = observer; }

 protected:
  std::vector<Block> blocks_;
  BlockObserver* observer_ = nullptr;
};

// By model.block:
//   reversible  Y1 = X1 + Attention(X2), Y2 = X2 + FeedForward(Y1); backward
//               rebuilds each block's input from its output, so nothing is kept
//               but the bucket ids of LSH layers
//   stored      the same function, to the bit (but for inputs of up to 8
//               positions on a GPU); keeps the activations, and so computes
//               nothing twice
//   residual    the ordinary Transformer, X + Attention(X) then
//               X + FeedForward(X), on x1 alone; keeps the activations
std::unique_ptr<Stack> make_stack(const Config& config, ParameterStore& store);

}  // namespace reformer
