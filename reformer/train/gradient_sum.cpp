#include "reformer/train/gradient_sum.h"

#include <c10/util/Exception.h>

#include "reformer/model/parameter_gradients.h"

namespace reformer {

std::vector<at::Tensor> defined_gradients(
    const std::vector<Parameter>& parameters,
    const std::vector<size_t>& indices) {
  std::vector<at::Tensor> gradients;
  for (const size_t i : indices) {
    gradients.push_back(gradient_sum(parameters[i].value));
  }
  return gradients;
}

GradientSum::GradientSum(SequenceModel& model, Communicator& ranks)
    : model_(model),
      ranks_(ranks),
      blocks_(static_cast<size_t>(model.block_count())) {
  const auto& parameters = model_.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t block = block_of(parameters[i].name);
    (block < 0 ? rest_ : blocks_[static_cast<size_t>(block)]).push_back(i);
  }
  model_.set_observer(this);
}

GradientSum::~GradientSum() { model_.set_observer(nullptr); }

void GradientSum::begin_step(int64_t batches) {
  batches_ = batches;
  batch_ = 0;
  next_ = static_cast<int64_t>(blocks_.size()) - 1;
}

void GradientSum::enter(int64_t /*block*/, int64_t /*next*/,
                        bool /*backward*/) {}

void GradientSum::leave(int64_t block, bool backward) {
  if (!backward || batch_ < batches_) return;
  TORCH_INTERNAL_ASSERT(block == next_);
  send(blocks_[static_cast<size_t>(next_--)]);
}

void GradientSum::send(const std::vector<size_t>& indices) {
  pending_.push_back(
      ranks_.sum(defined_gradients(model_.parameters(), indices)));
}

void GradientSum::finish(const at::Tensor& more) {
  // In the order of a rank that had examples.
  while (next_ >= 0) send(blocks_[static_cast<size_t>(next_--)]);
  pending_.push_back(ranks_.sum({more}));
  send(rest_);
  for (const auto& one : pending_) one.wait();
  pending_.clear();
}

}  // namespace reformer
