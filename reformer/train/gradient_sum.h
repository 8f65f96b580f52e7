// Gradients of all ranks, added up block by block while the backward pass goes
// on.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/distributed/communicator.h"
#include "reformer/model/sequence_model.h"

namespace reformer {

// The head's gradients are complete when a backward pass comes to the last
// block, a block's when it leaves it: their sum is then on its way, while the
// block before is undone. The rest, embeddings, is complete at the end.
//
// A step: begin_step, then for each batch begin_batch and a training pass of
// the model (none where this rank has no example of it), then finish.
class GradientSum : public BlockObserver {
 public:
  GradientSum(SequenceModel& model, Communicator& ranks);
  ~GradientSum() override;
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  void begin_step(int64_t batches);
  void begin_batch() { ++batch_; }

  // A step whose gradients come all at once, of a captured pass: finish alone
  // follows.
  void begin_captured_step() { begin_step(/*batches=*/-1); }

  // All gradients, and `more`, are the sums over all ranks from here on.
  void finish(const at::Tensor& more);

  void enter(int64_t block, int64_t next, bool backward) override;
  void leave(int64_t block, bool backward) override;

 private:
  void send(const std::vector<size_t>& indices);
  void send_until(int64_t block);

  SequenceModel& model_;
  Communicator& ranks_;
  // Indices of parameters: of each block, and behind the last one of the head.
  std::vector<std::vector<size_t>> groups_;
  std::vector<size_t> rest_;
  int64_t batches_ = 0;
  int64_t batch_ = 0;  // from 1 on
  int64_t next_ = -1;  // the group whose gradients are sent next
  std::vector<Pending> pending_;
};

// Gradients that are undefined become zero, so that all ranks have the same.
std::vector<at::Tensor> defined_gradients(
    const std::vector<Parameter>& parameters,
    const std::vector<size_t>& indices);

}  // namespace reformer
