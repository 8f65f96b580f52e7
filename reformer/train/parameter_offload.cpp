#include "reformer/train/parameter_offload.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/optim/clip.h"

namespace reformer {
namespace {

// One computes, one comes in, one leaves.
constexpr int64_t kSlots = 3;

at::Tensor host_memory(int64_t numel, const at::Tensor& like, bool pinned) {
  return at::empty(
      {numel},
      at::TensorOptions().dtype(like.scalar_type()).pinned_memory(pinned));
}

}  // namespace

ParameterOffload::ParameterOffload(SequenceModel& model, Optimizer& optimizer,
                                   bool waiting, Communicator* ranks)
    : model_(model),
      optimizer_(optimizer),
      ranks_(ranks),
      device_(model.placement().device),
      in_(device_),
      out_(device_),
      blocks_(static_cast<size_t>(model.block_count())),
      slots_(std::min<size_t>(kSlots, blocks_.size())) {
  const at::NoGradGuard no_grad;
  auto& parameters = model_.parameters();
  std::vector<std::vector<at::Tensor>> weights(blocks_.size());
  std::vector<std::vector<at::Tensor>> state(blocks_.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t block = block_of(parameters[i].name);
    if (block < 0) continue;
    weights[block].push_back(parameters[i].value);
    blocks_[block].indices.push_back(i);
  }
  for (const auto& [name, value] : optimizer_.state()) {
    const int64_t block = block_of(name);
    if (block >= 0) state[block].push_back(value);
  }
  int64_t most[kParts] = {};
  for (size_t b = 0; b < blocks_.size(); ++b) {
    auto& block = blocks_[b];
    block.groups[kWeights] = TensorGroup(weights[b]);
    block.groups[kState] = TensorGroup(state[b]);
    if (waiting) block.groups[kGradients] = TensorGroup(weights[b]);
    for (const Part part : {kWeights, kState, kGradients}) {
      auto& group = block.groups[part];
      block.host[part] =
          host_memory(group.numel(), weights[b][0], device_.is_cuda());
      most[part] = std::max(most[part], group.numel());
      if (part == kGradients) continue;
      const auto views = group.views_of(block.host[part]);
      for (size_t i = 0; i < views.size(); ++i) {
        views[i].copy_(group.tensors()[i]);
      }
      group.lie_in(block.host[part]);
    }
  }
  for (auto& slot : slots_) {
    for (const Part part : {kWeights, kState, kGradients}) {
      slot.memory[part] =
          at::empty({most[part]}, weights[0][0].options().device(device_));
    }
  }
  model_.set_observer(this);
}

ParameterOffload::~ParameterOffload() {
  model_.set_observer(nullptr);
  try {
    reformer::synchronize(device_);  // copies still use the slots
  } catch (const c10::Error&) {      // the device is lost, and was reported
  }
}

void ParameterOffload::begin_step(double learning_rate, int64_t batches,
                                  double clip) {
  learning_rate_ = learning_rate;
  batches_ = batches;
  clip_ = clip;
  batch_ = 0;
  require(updates_at_once() || blocks_[0].host[kGradients].numel() > 0,
          "host parameters: were not made for gradients that wait");
  norm_parts_.assign(model_.parameters().size(), {});
  optimizer_.begin_step();
}

void ParameterOffload::begin_batch() { ++batch_; }

ParameterOffload::Slot* ParameterOffload::slot_with(int64_t block) {
  for (auto& slot : slots_) {
    if (slot.block == block) return &slot;
  }
  return nullptr;
}

// The one that has it, else the one that was needed least recently.
ParameterOffload::Slot& ParameterOffload::slot_for(int64_t block) {
  if (Slot* slot = slot_with(block)) return *slot;
  Slot* oldest = nullptr;
  for (auto& slot : slots_) {
    if (slot.block >= 0 && slot.block == current_) continue;
    if (!oldest || slot.used < oldest->used) oldest = &slot;
  }
  oldest->block = block;
  std::fill_n(oldest->present, kParts, false);
  return *oldest;
}

bool ParameterOffload::wanted(Part part, Use use) const {
  if (part == kWeights || use == Use::kUpdate) return true;
  if (use == Use::kForward) return false;
  return part == kState ? updates_at_once() : batch_ > 1;
}

void ParameterOffload::fetch(int64_t block, Use use) {
  Slot& slot = slot_for(block);
  slot.used = ++entries_;
  in_.run([&] {
    slot.free.delay_current_stream();
    blocks_[block].written.delay_current_stream();
    for (const Part part : {kWeights, kState, kGradients}) {
      if (slot.present[part] || !wanted(part, use)) continue;
      const auto& from = blocks_[block].host[part];
      slot.memory[part]
          .narrow(0, 0, from.numel())
          .copy_(from, /*non_blocking=*/true);
      slot.present[part] = true;
    }
    slot.arrived = DeviceEvent::now(device_);
  });
}

void ParameterOffload::bring(int64_t block, int64_t next, Use use) {
  current_ = block;
  fetch(block, use);
  if (next >= 0 && slots_.size() > 1) fetch(next, use);
  Slot& slot = *slot_with(block);
  slot.arrived.delay_current_stream();
  for (const Part part : {kWeights, kState}) {
    if (slot.present[part]) {
      blocks_[block].groups[part].lie_in(slot.memory[part]);
    }
  }
}

void ParameterOffload::release(Block& block) {
  auto& parameters = model_.parameters();
  for (const Part part : {kWeights, kState}) {
    block.groups[part].lie_in(block.host[part]);
  }
  for (const size_t i : block.indices) {
    parameters[i].gradient().reset();
  }
  current_ = -1;
}

void ParameterOffload::enter(int64_t block, int64_t next, bool backward) {
  bring(block, next, backward ? Use::kBackward : Use::kForward);
  Slot& slot = *slot_with(block);
  if (!backward || !slot.present[kGradients]) return;
  // Of the batches before: the next ones' are added in place.
  const Block& here = blocks_[block];
  const auto gradients =
      here.groups[kGradients].views_of(slot.memory[kGradients]);
  for (size_t i = 0; i < here.indices.size(); ++i) {
    model_.parameters()[here.indices[i]].gradient() = gradients[i];
  }
}

void ParameterOffload::leave(int64_t block, bool backward) {
  Slot& slot = *slot_with(block);
  if (backward) {
    take_gradients(blocks_[block], slot);
  } else {
    slot.free = DeviceEvent::now(device_);
  }
  release(blocks_[block]);
}

// What changed, to the host; the slot is free when it has got there.
void ParameterOffload::write_back(Block& block, Slot& slot,
                                  const std::vector<Part>& parts) {
  const auto ready = DeviceEvent::now(device_);
  out_.run([&] {
    ready.delay_current_stream();
    for (const Part part : parts) {
      block.host[part].copy_(
          slot.memory[part].narrow(0, 0, block.host[part].numel()),
          /*non_blocking=*/true);
    }
    block.written = DeviceEvent::now(device_);
  });
  slot.free = block.written;
}

void ParameterOffload::take_gradients(Block& block, Slot& slot) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const size_t i : block.indices) {
    gradients.push_back(model_.parameters()[i].gradient());
  }
  if (batch_ == batches_) {
    if (ranks_ != nullptr) ranks_->sum(gradients).wait();
    const auto parts = norm_parts(gradients);
    for (size_t i = 0; i < parts.size(); ++i) {
      norm_parts_[block.indices[i]] = parts[i];
    }
  }
  if (updates_at_once()) return update(block, slot, gradients);
  const auto places =
      block.groups[kGradients].views_of(slot.memory[kGradients]);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].const_data_ptr() == places[i].const_data_ptr()) continue;
    places[i].copy_(gradients[i]);
  }
  write_back(block, slot, {kGradients});
  slot.present[kGradients] = false;  // read anew by the next batch
}

// Of this block alone: the others' gradients stay out of the optimizer's sight.
void ParameterOffload::update(Block& block, Slot& slot,
                              const std::vector<at::Tensor>& gradients) {
  auto& parameters = model_.parameters();
  std::vector<at::Tensor> hidden;
  for (const auto& parameter : parameters) {
    hidden.push_back(std::exchange(parameter.gradient(), {}));
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    parameters[block.indices[i]].gradient() = gradients[i];
  }
  optimizer_.update(parameters, learning_rate_);
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].gradient() = hidden[i];
  }
  write_back(block, slot, {kWeights, kState});
}

at::Tensor ParameterOffload::clip() {
  auto& parameters = model_.parameters();
  std::vector<at::Tensor> resident;
  std::vector<size_t> indices;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].gradient().defined()) continue;
    resident.push_back(parameters[i].gradient());
    indices.push_back(i);
  }
  if (ranks_ != nullptr) ranks_->sum(resident).wait();
  const auto parts = norm_parts(resident);
  for (size_t i = 0; i < parts.size(); ++i) norm_parts_[indices[i]] = parts[i];
  std::erase_if(norm_parts_, [](const auto& x) { return !x.defined(); });
  norm_ = norm_of(norm_parts_);
  scale_gradients(resident, norm_, clip_);
  return norm_;
}

void ParameterOffload::apply() {
  auto& parameters = model_.parameters();
  optimizer_.update(parameters, learning_rate_);  // the resident ones
  if (updates_at_once()) return;
  // Backwards, so that the next step finds its first blocks on the device.
  for (auto b = static_cast<int64_t>(blocks_.size()) - 1; b >= 0; --b) {
    bring(b, b - 1, Use::kUpdate);
    Block& block = blocks_[b];
    Slot& slot = *slot_with(b);
    const auto gradients =
        block.groups[kGradients].views_of(slot.memory[kGradients]);
    scale_gradients(gradients, norm_, clip_);
    update(block, slot, gradients);
    slot.present[kGradients] = false;
    release(block);
  }
}

void ParameterOffload::synchronize() const {
  for (const auto& block : blocks_) block.written.wait();
}

void ParameterOffload::forget_device() {
  for (auto& slot : slots_) slot.block = -1;
}

}  // namespace reformer
