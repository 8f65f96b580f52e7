// Parameters of blocks, their gradients and optimizer state in host memory,
// each block's on the device only while it is computed (paper Sec. 3, last
// paragraph).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/device/device_event.h"
#include "reformer/distributed/communicator.h"
#include "reformer/model/sequence_model.h"
#include "reformer/optim/optimizer.h"
#include "reformer/optim/tensor_group.h"

namespace reformer {

// A few slots on the device hold a block each. While one is computed, the next
// one's parameters come in on a stream of their own, and what the last one
// changed leaves on another. Everything is computed as if all were resident, in
// the same order and to the same bits.
//
// A step: begin_step, then for each batch begin_batch and a training pass of
// the model, then clip, then apply. Blocks are updated as their gradients
// complete where nothing else must be known before (one batch, no clipping),
// else by apply, when their gradients have waited on the host.
class ParameterOffload : public BlockObserver {
 public:
  // The model must have been made with Placement::blocks_on_host. `waiting`:
  // gradients will have to wait on the host, because there is more than one
  // batch a step or they are clipped. `ranks`: whose gradients are added up
  // before they are used; null: there are no others.
  ParameterOffload(SequenceModel& model, Optimizer& optimizer, bool waiting,
                   Communicator* ranks = nullptr);
  ~ParameterOffload() override;
  ParameterOffload(const ParameterOffload&) = delete;
  ParameterOffload& operator=(const ParameterOffload&) = delete;

  // clip: train.clip
  void begin_step(double learning_rate, int64_t batches, double clip);
  void begin_batch();

  // As clip_gradients, over all parameters.
  at::Tensor clip();
  void apply();

  // Until all numbers are on the host, where Parameter::value and the
  // optimizer's state then are.
  void synchronize() const;

  // After somebody wrote to the parameters or the state.
  void forget_device();

  void enter(int64_t block, int64_t next, bool backward) override;
  void leave(int64_t block, bool backward) override;

 private:
  enum Part { kWeights, kState, kGradients, kParts };
  enum class Use { kForward, kBackward, kUpdate };

  struct Block {
    TensorGroup groups[kParts];   // kGradients: shaped as the weights
    at::Tensor host[kParts];      // pinned
    std::vector<size_t> indices;  // of its parameters
    DeviceEvent written;          // host is complete
  };

  struct Slot {
    int64_t block = -1;
    int64_t used = 0;  // when, in entries
    at::Tensor memory[kParts];
    bool present[kParts] = {};
    DeviceEvent arrived;
    DeviceEvent free;  // may be overwritten
  };

  Slot* slot_with(int64_t block);
  Slot& slot_for(int64_t block);
  bool wanted(Part part, Use use) const;
  void fetch(int64_t block, Use use);
  void bring(int64_t block, int64_t next, Use use);
  void release(Block& block);
  void write_back(Block& block, Slot& slot, const std::vector<Part>& parts);
  void take_gradients(Block& block, Slot& slot);
  void update(Block& block, Slot& slot,
              const std::vector<at::Tensor>& gradients);
  bool updates_at_once() const { return batches_ == 1 && clip_ == 0; }

  SequenceModel& model_;
  Optimizer& optimizer_;
  Communicator* ranks_;
  c10::Device device_;
  SideStream in_;
  SideStream out_;
  std::vector<Block> blocks_;
  std::vector<Slot> slots_;
  int64_t current_ = -1;
  int64_t entries_ = 0;

  double learning_rate_ = 0;
  double clip_ = 0;
  int64_t batches_ = 1;
  int64_t batch_ = 0;                   // from 1 on
  std::vector<at::Tensor> norm_parts_;  // of every parameter's gradient
  at::Tensor norm_;
};

}  // namespace reformer
