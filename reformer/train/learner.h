// A model with its optimizer: what takes one training step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reformer/model/language_model.h"
#include "reformer/tasks/task.h"
#include "reformer/train/optimizer.h"

namespace reformer {

struct StepGradients {
  LossSums sums;            // of all batches
  double norm = 0;          // of all gradients, before they were clipped
  int64_t tokens = 0;
  bool finite() const;      // the loss and the norm
};

class Learner {
 public:
  explicit Learner(const Config& config);

  // The gradients of step t = 1, 2, ... (t keys hashes and dropout; 0 is
  // evaluation's): of the mean over `batches` of their mean losses, clipped by
  // train.clip. They lie in the parameters until `apply` or the next call.
  StepGradients gradients(const std::vector<Batch>& batches, int64_t step);

  // Updates the parameters; returns the learning rate of that step.
  double apply(int64_t step);

  // The pass of that step, as `gradients` makes it.
  Pass pass(int64_t step) const;

  LanguageModel& model() { return model_; }
  const LanguageModel& model() const { return model_; }
  Optimizer& optimizer() { return *optimizer_; }

 private:
  TrainConfig train_;
  LanguageModel model_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace reformer
