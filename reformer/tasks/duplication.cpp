#include "reformer/tasks/duplication.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>

#include "reformer/data/row_key.h"

namespace reformer {
namespace {

// Uniform in 1..tokens; the product keeps the high bits, and its bias is
// below tokens / 2^32.
int64_t token_of(uint32_t bits, int64_t tokens) {
  return 1 + static_cast<int64_t>((uint64_t{bits} * uint64_t(tokens)) >> 32);
}

void write_sequence(PhiloxKey key, int64_t tokens, int64_t length,
                    int64_t* out) {
  const int64_t half = length / 2;
  out[0] = out[half] = 0;
  PhiloxCounter bits{};
  for (int64_t i = 0; i < half - 1; ++i) {
    if (i % 4 == 0) bits = philox(key, {static_cast<uint32_t>(i / 4), 0, 0, 0});
    out[1 + i] = out[half + 1 + i] = token_of(bits[i % 4], tokens);
  }
}

// The halves of a batch of sequences without their tokens.
Batch empty_batch(int64_t rows, int64_t length) {
  Batch batch{at::empty({rows, length}, at::kLong),
              at::zeros({rows, length}, at::kBool)};
  batch.loss_mask.slice(1, length / 2).fill_(true);
  return batch;
}

Draw draw_of(Split split) {
  return split == Split::kValidation ? Draw::kDuplicationValidation
                                     : Draw::kDuplicationTest;
}

}  // namespace

DuplicationTask::DuplicationTask(const Config& config)
    : tokens_(config.task.alphabet),
      batch_(config.train.batch),
      length_(config.train.length),
      seed_(config.train.seed) {}

Batch DuplicationTask::training_batch(int64_t index) const {
  auto batch = empty_batch(batch_, length_);
  auto* tokens = batch.tokens.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < batch_; ++row) {
    write_sequence(row_key(seed_, Draw::kDuplicationTraining, index, row),
                   tokens_, length_, tokens + row * length_);
  }
  return batch;
}

int64_t DuplicationTask::evaluation_batches(Split) const {
  return (kExamples + batch_ - 1) / batch_;
}

// Keyed on the example alone, so that the examples do not depend on the size
// of the batches.
Batch DuplicationTask::evaluation_batch(Split split, int64_t index) const {
  assert(index >= 0 && index < evaluation_batches(split));
  const int64_t first = index * batch_;
  const int64_t rows = std::min(batch_, kExamples - first);
  auto batch = empty_batch(rows, length_);
  auto* tokens = batch.tokens.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    write_sequence(row_key(seed_, draw_of(split), first + row, 0), tokens_,
                   length_, tokens + row * length_);
  }
  return batch;
}

}  // namespace reformer
