// The batches of a split as evaluations go through them: alone, or each rank
// its own, and the figures of all added up.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "reformer/distributed/ranks.h"
#include "reformer/train/evaluation.h"

namespace reformer {

// Calls body(batch, pass) for the batches that are this rank's: of R groups of
// ranks that share sequences, the g-th takes g, g + R, g + 2 R and so on of
// those that are evaluated. Those are the first of the split, or with `spread`
// from all over it.
using BatchBody = std::function<void(const Batch& batch, const Pass& pass)>;
void for_each_batch(const SequenceModel& model, const Task& task,
                    const EvaluatedSplit& of, bool spread,
                    const BatchBody& body);

// float64 on the host, of the same sizes on all ranks: the sum of all in the
// order of the ranks, the same bits on each.
at::Tensor sum_of_ranks(const at::Tensor& own, World* world);

// Of a sequence's positions those that are this rank's, where ranks share it.
Share own_positions(const SequenceModel& model, int64_t length);

// Losses [batch, length] float64 on the host of tokens [batch, length] int64; 0
// where another rank has the position.
at::Tensor own_losses(const LanguageModel& model, const at::Tensor& tokens,
                      const Pass& pass);

}  // namespace reformer
