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
  // what each layer hashed to, undefined where it is not LSH. Returns what
  // block `end` reads: of the number of blocks, the output.
  Streams evaluate(Streams x, const Pass& pass,
                   std::vector<at::Tensor>* buckets, int64_t end) const;
  Streams evaluate(Streams x, const Pass& pass,
                   std::vector<at::Tensor>* buckets = nullptr) const {
    return evaluate(std::move(x), pass, buckets, count());
  }

  // For training: keeps what `backward` needs, until then.
  virtual Streams forward(Streams x, const Pass& pass) = 0;
  virtual Streams backward(Streams y, Streams d_y) = 0;

  // How the head reads the output: concat(Y1, Y2), or the one stream there is.
  virtual bool two_streams() const { return true; }

  // Both streams start as the embedded input. Owns x.
  Streams begin(at::Tensor x) const {
    return {x, two_streams() ? x.clone() : x};
  }

  // The equations of the paper's Sec. 3, for whoever goes through the blocks
  // (training, evaluation, decoding): for each block i before `end`, in order,
  //   attention(i, x1, x2)     adds Attention(x2) to x1
  //   feed_forward(i, x2, x1)  adds FeedForward(x1) to x2
  // in place or by another tensor. x2 is x1 where there is one stream.
  template <class AddAttention, class AddFeedForward>
  void for_each_branch(Streams& x, int64_t end, const AddAttention& attention,
                       const AddFeedForward& feed_forward) const {
    auto& x2 = two_streams() ? x.x2 : x.x1;
    for (int64_t i = 0; i < end; ++i) {
      if (observer_) observer_->enter(i, i + 1 < end ? i + 1 : -1, false);
      attention(i, x.x1, x2);
      feed_forward(i, x2, x.x1);
      if (observer_) observer_->leave(i, false);
    }
  }

  // The way back: of each block, the last first, feed_forward and then
  // attention, with the same arguments.
  template <class AddAttention, class AddFeedForward>
  void for_each_branch_backward(Streams& x, const AddAttention& attention,
                                const AddFeedForward& feed_forward) const {
    auto& x2 = two_streams() ? x.x2 : x.x1;
    for (int64_t i = count() - 1; i >= 0; --i) {
      if (observer_) observer_->enter(i, i - 1, true);
      feed_forward(i, x2, x.x1);
      attention(i, x.x1, x2);
      if (observer_) observer_->leave(i, true);
    }
  }

  const std::vector<Block>& blocks() const { return blocks_; }
  int64_t count() const { return static_cast<int64_t>(blocks_.size()); }

  // Told of every block that a pass comes to; null: nobody is.
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
