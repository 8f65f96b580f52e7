#include "reformer/train/gradient_sum.h"

#include <c10/util/Exception.h>

#include "reformer/model/parameter_gradients.h"

namespace reformer {
namespace {

// A matrix that the head shares is not its own.
bool is_of_head(const std::string& name) { return name.starts_with("head."); }

}  // namespace

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
      groups_(static_cast<size_t>(model.block_count()) + 1) {
  const auto& parameters = model_.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& name = parameters[i].name;
    const int64_t block = block_of(name);
    if (block >= 0) {
      groups_[static_cast<size_t>(block)].push_back(i);
    } else {
      (is_of_head(name) ? groups_.back() : rest_).push_back(i);
    }
  }
  model_.set_observer(this);
}

GradientSum::~GradientSum() { model_.set_observer(nullptr); }

void GradientSum::begin_step(int64_t batches) {
  batches_ = batches;
  batch_ = 0;
  next_ = static_cast<int64_t>(groups_.size()) - 1;
}

void GradientSum::enter(int64_t block, int64_t /*next*/, bool backward) {
  if (backward && batch_ == batches_) send_until(block + 1);
}

void GradientSum::leave(int64_t block, bool backward) {
  if (backward && batch_ == batches_) send_until(block);
}

// Group by group, in the same order on all ranks.
void GradientSum::send_until(int64_t group) {
  while (next_ >= group) send(groups_[static_cast<size_t>(next_--)]);
}

void GradientSum::send(const std::vector<size_t>& indices) {
  pending_.push_back(
      ranks_.sum(defined_gradients(model_.parameters(), indices)));
}

void GradientSum::finish(const at::Tensor& more) {
  send_until(0);  // of a rank that has no examples in the last batch
  pending_.push_back(ranks_.sum({more}));
  send(rest_);
  for (const auto& one : pending_) one.wait();
  pending_.clear();
}

}  // namespace reformer
