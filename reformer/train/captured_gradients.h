// The gradients of a step on a GPU, asked for by one launch: for models whose
// kernels are shorter than the host's time to launch them.
#pragma once

#include <functional>
#include <vector>

#include "reformer/device/cuda_graph.h"
#include "reformer/model/sequence_model.h"
#include "reformer/tasks/task.h"

namespace reformer {

struct WeighedBatch {
  Batch batch;
  double scale;               // of the sum of its losses
  int64_t first_example = 0;  // the batch's first, among the step's
};

class CapturedGradients {
 public:
  // Computes the gradients of a batch into the model's parameters; returns what
  // is to be known of the step.
  using Compute =
      std::function<at::Tensor(const WeighedBatch& batch, const Pass& pass)>;

  // Captures `compute`, which should have run before, for batches like `like`.
  CapturedGradients(SequenceModel& model, const WeighedBatch& like,
                    const Compute& compute);

  // Whether the batch has the sizes, the scale and the place in its step that
  // were captured.
  bool fits(const WeighedBatch& batch) const;

  // What `compute` would do and return; the next call overwrites it.
  at::Tensor replay(const WeighedBatch& batch, const Pass& pass);

 private:
  SequenceModel& model_;
  Batch input_;  // on the device
  double scale_;
  int64_t first_example_;
  at::Tensor step_;  // int64, on the device
  CudaGraph graph_;
  at::Tensor result_;
  std::vector<at::Tensor> gradients_;  // of all parameters
};

}  // namespace reformer
