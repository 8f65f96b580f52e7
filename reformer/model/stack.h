// The layers of a model, and three ways through them (paper Sec. 3).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "reformer/model/block.h"
#include "reformer/model/block_observer.h"
#include "reformer/model/streams.h"

namespace reformer {

// A branch of the stack: y[to] += f(y[from]).
struct BranchPlace {
  int64_t block = 0;
  int to = 0;
  int from = 1;
};

// A stack computes its output without keeping anything it need not keep, and
// then, told the gradient of the output, adds the parameters' gradients to
// theirs and returns that of the input. forward consumes its argument, backward
// both the output that forward returned and the gradient.
class Stack {
 public:
  // `first_block`: what the observer calls the first of them, for models of
  // several stacks; `after`: what it is told comes after the last, -1: nothing.
  explicit Stack(std::vector<Block> blocks, int64_t first_block = 0,
                 int64_t after = -1)
      : blocks_(std::move(blocks)), first_block_(first_block), after_(after) {}
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
  // (training, evaluation, decoding): branches alternate between the streams,
  // each adds to one what it makes of the other. Calls, for each block before
  // `end`, in order,
  //   attention(place, block.attention)
  //   attention(place, *block.cross_attention)  where there is one
  //   feed_forward(place, block.feed_forward)
  // With two branches a block is the paper's, X1 += Attention(X2) and
  // X2 += FeedForward(X1); with three the streams change roles from block to
  // block. Where there is one stream, both places are the first.
  template <class AddAttention, class AddFeedForward>
  void for_each_branch(int64_t end, const AddAttention& attention,
                       const AddFeedForward& feed_forward) const {
    int64_t branch = 0;
    for (int64_t i = 0; i < end; ++i) {
      const Block& block = blocks_[i];
      if (observer_) observer_->enter(first_block_ + i, next_of(i, end), false);
      attention(place_of(i, branch++), block.attention);
      if (block.cross_attention) {
        attention(place_of(i, branch++), *block.cross_attention);
      }
      feed_forward(place_of(i, branch++), block.feed_forward);
      if (observer_) observer_->leave(first_block_ + i, false);
    }
  }

  // The way back: the same calls in the opposite order.
  template <class AddAttention, class AddFeedForward>
  void for_each_branch_backward(const AddAttention& attention,
                                const AddFeedForward& feed_forward) const {
    int64_t branch = branches();
    for (int64_t i = count() - 1; i >= 0; --i) {
      const Block& block = blocks_[i];
      if (observer_) {
        observer_->enter(first_block_ + i, first_block_ + i - 1, true);
      }
      feed_forward(place_of(i, --branch), block.feed_forward);
      if (block.cross_attention) {
        attention(place_of(i, --branch), *block.cross_attention);
      }
      attention(place_of(i, --branch), block.attention);
      if (observer_) observer_->leave(first_block_ + i, true);
    }
  }

  const std::vector<Block>& blocks() const { return blocks_; }
  int64_t count() const { return static_cast<int64_t>(blocks_.size()); }

  // Told of every block that a pass comes to; null: nobody is.
  void set_observer(BlockObserver* observer) { observer_ = observer; }

 protected:
  std::vector<Block> blocks_;
  BlockObserver* observer_ = nullptr;

 private:
  BranchPlace place_of(int64_t block, int64_t branch) const {
    if (!two_streams()) return {block, 0, 0};
    const int to = static_cast<int>(branch % 2);
    return {block, to, 1 - to};
  }
  int64_t branches() const {
    return blocks_.empty() ? 0 : count() * blocks_[0].branches();
  }
  int64_t next_of(int64_t i, int64_t end) const {
    if (i + 1 < end) return first_block_ + i + 1;
    return end == count() ? after_ : -1;
  }

  int64_t first_block_;
  int64_t after_;
};

// By model.block:
//   reversible  the two streams; backward rebuilds each branch's input from its
//               output, so nothing is kept but the bucket ids of LSH layers
//   stored      the same function, to the bit (but for inputs of up to 8
//               positions on a GPU); keeps the activations, and so computes
//               nothing twice
//   residual    the ordinary Transformer, X + Attention(X) then
//               X + FeedForward(X), on x1 alone; keeps the activations
//
// kDecoder: model.layers, causal, with cross-attention where there is an
// encoder, of a language model without. kEncoder: model.encoder_layers, which
// see what comes after them, too. The model's blocks are counted from the
// encoder's first on.
enum class StackKind { kEncoder, kDecoder };
std::unique_ptr<Stack> make_stack(const Config& config, StackKind kind,
                                  ParameterStore& store);

}  // namespace reformer
