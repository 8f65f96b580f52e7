// Between sequences that ranks share by positions and by heads (Ulysses,
// arXiv 2309.14509): attention sees all positions of some heads, everything
// else some positions of all heads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace reformer {

class Communicator;

// How many ranks share the sequences of a pass; null: one has all of them.
int64_t sharing_ranks(const Communicator* ranks);

// The numbers themselves do not change. Ranks take equal parts of the
// positions, in their order, and of the heads shares that may differ by one.
class SequenceExchange {
 public:
  // Of null, of one rank: everything stays as it is.
  SequenceExchange(Communicator* ranks, int64_t heads);

  // Of the model's heads, those that this rank attends with.
  int64_t first_head() const { return first_; }
  int64_t own_heads() const { return own_; }
  bool shares() const { return ranks_ != nullptr; }

  // How many of the first `count` heads are this rank's.
  int64_t own_of_first(int64_t count) const;

  // [batch, own positions, heads * d_head] to [batch, length,
  // own heads * d_head]. Lets go of x, which its caller need not keep, before
  // all of the result is there.
  at::Tensor by_heads(at::Tensor x) const;

  // The way back.
  at::Tensor by_positions(at::Tensor x) const;

 private:
  Communicator* ranks_;
  int64_t heads_;
  int64_t first_ = 0;
  int64_t own_;
};

}  // namespace reformer
