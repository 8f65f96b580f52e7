#include "reformer/train/batch_source.h"

namespace reformer {

BatchSource::BatchSource(const Task& task, int64_t accumulate, int64_t first,
                         bool ahead)
    : task_(task), accumulate_(accumulate), ahead_(ahead), position_(first) {}

std::vector<Batch> BatchSource::made(int64_t position) const {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < accumulate_; ++i) {
    batches.push_back(task_.training_batch(position + i));
    if (!ahead_) continue;
    auto& batch = batches.back();
    for (auto* tensor :
         {&batch.tokens, &batch.loss_mask, &batch.source, &batch.source_mask}) {
      if (tensor->defined()) *tensor = tensor->pin_memory();
    }
  }
  return batches;
}

std::vector<Batch> BatchSource::next() {
  auto batches = coming_.valid() ? coming_.get() : made(position_);
  position_ += accumulate_;
  if (ahead_) {
    coming_ = std::async(std::launch::async,
                         [this, from = position_] { return made(from); });
  }
  return batches;
}

}  // namespace reformer
