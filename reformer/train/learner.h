// A model with its optimizer: what takes one training step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reformer/device/device_event.h"
#include "reformer/model/language_model.h"
#include "reformer/optim/optimizer.h"
#include "reformer/tasks/task.h"
#include "reformer/train/host_parameters.h"
#include "reformer/train/recorded_gradients.h"

namespace reformer {

struct StepNumbers {
  LossSums sums;    // of all batches
  double norm = 0;  // of all gradients, before they were clipped
  bool finite() const;
};

// A step's numbers, on their way from the device until somebody reads them.
struct StepGradients {
  int64_t step = 0;
  int64_t tokens = 0;
  at::Tensor numbers;  // [4] float64 on the host: loss sums, norm
  DeviceEvent arrival;

  StepNumbers read() const;  // waits for them, not for what came after
};

class Learner {
 public:
  explicit Learner(const Config& config, const Placement& placement = {});

  // The gradients of step t = 1, 2, ... (t keys hashes and dropout; 0 is
  // evaluation's): of the mean over `batches` of their mean losses, clipped by
  // train.clip. They lie in the parameters until the next call; with
  // train.parameters = host, those of blocks do not, and where nothing else has
  // to be known (one batch, no clipping) blocks are updated here already. On a
  // GPU nothing waits for it.
  StepGradients gradients(const std::vector<Batch>& batches, int64_t step);

  // Updates the parameters; returns the learning rate of that step.
  double apply(int64_t step);

  // Continues from a checkpoint's parameters and optimizer state.
  void load(const std::vector<NamedTensor>& parameters,
            const std::vector<NamedTensor>& optimizer);

  // Until parameters and optimizer state can be read from where they are.
  void settle() const;

  // The pass of that step, as `gradients` makes it.
  Pass pass(int64_t step) const;

  // Whether steps are repeated by now, and not computed as they come.
  bool recorded() const { return recorded_ != nullptr; }

  LanguageModel& model() { return model_; }
  const LanguageModel& model() const { return model_; }
  Optimizer& optimizer() { return *optimizer_; }

 private:
  at::Tensor compute(const std::vector<WeighedBatch>& batches,
                     const Pass& pass);
  bool worth_recording(const std::vector<WeighedBatch>& batches) const;
  void record(const WeighedBatch& like);

  TrainConfig train_;
  LanguageModel model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<HostParameters> host_;  // by train.parameters
  std::unique_ptr<RecordedGradients> recorded_;
  int64_t computed_ = 0;  // steps, as they came
  bool recordable_ = true;
};

}  // namespace reformer
