// A model with its optimizer: what takes one training step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reformer/device/device_event.h"
#include "reformer/distributed/world.h"
#include "reformer/model/language_model.h"
#include "reformer/model/sequence_model.h"
#include "reformer/optim/optimizer.h"
#include "reformer/tasks/task.h"
#include "reformer/train/captured_gradients.h"
#include "reformer/train/gradient_sum.h"
#include "reformer/train/parameter_offload.h"

namespace reformer {

struct StepStatistics {
  LossSums sums;        // of all batches
  double norm = 0;      // of all gradients, before they were clipped
  double own_loss = 0;  // of what this rank has of `sums`
  bool finite() const;
};

// A step's numbers, on their way from the device until somebody reads them.
struct StepGradients {
  int64_t step = 0;
  int64_t tokens = 0;
  at::Tensor numbers;  // [5] float64 on the host: loss sums, norm, own loss
  DeviceEvent arrival;

  StepStatistics read() const;  // waits for them, not for what came after
};

class Learner {
 public:
  // With a `world` of several ranks, which outlives it, all ranks call all
  // functions alike, and each takes its share of every batch it is given.
  // Throws Error where there are fewer examples than ranks to share them.
  explicit Learner(const Config& config, const Placement& placement = {},
                   World* world = nullptr);

  // The gradients of step t = 1, 2, ... (t keys hashes and dropout; 0 is
  // evaluation's): of the mean over `batches` of their mean losses, clipped by
  // train.clip. They lie in the parameters until the next call; with
  // train.parameters = host, those of blocks do not, and where nothing else has
  // to be known (one batch, no clipping) blocks are updated here already. On a
  // GPU nothing waits for it.
  StepGradients gradients(const std::vector<Batch>& batches, int64_t step);

  // Updates the parameters; returns the learning rate of that step.
  double apply(int64_t step);

  // Which share of its time the run has had, for the schedule; 0: no limit.
  void set_time_share(double share) { time_share_ = share; }

  // Begins with these, and with the optimizer's first state.
  void initialize(const std::vector<NamedTensor>& parameters);

  // Continues from a checkpoint's parameters and whole optimizer state; of an
  // exported model there is none, and the optimizer begins anew.
  void load(const std::vector<NamedTensor>& parameters,
            const std::vector<NamedTensor>& optimizer);

  // All ranks go on with the parameters of rank 0, whose library may have drawn
  // or rounded them otherwise.
  void share_parameters();

  // Until parameters and optimizer state can be read from where they are.
  void synchronize() const;

  // The pass of that step, as `gradients` makes it.
  Pass pass(int64_t step) const;

  // Whether steps are replayed by now, and not computed as they come.
  bool captured() const { return captured_ != nullptr; }

  SequenceModel& model() { return *model_; }
  const SequenceModel& model() const { return *model_; }

  // The same; throws Error where it is an encoder-decoder.
  LanguageModel& language_model() { return language_model_of(*model_); }
  Optimizer& optimizer() { return *optimizer_; }

 private:
  // What a captured step is bound to.
  struct Shape {
    std::vector<std::vector<int64_t>> sizes;
    double scale = 0;
    bool operator==(const Shape&) const = default;
  };
  static Shape shape_of(const WeighedBatch& batch);

  std::vector<WeighedBatch> weighed(const std::vector<Batch>& batches) const;
  at::Tensor compute(const std::vector<WeighedBatch>& batches,
                     const Pass& pass);
  at::Tensor own_gradients(const std::vector<WeighedBatch>& batches,
                           const Pass& pass);
  at::Tensor finish_gradients(const at::Tensor& sums);
  at::Tensor replayed(const WeighedBatch& batch, const Pass& pass);
  at::Tensor sums_of(const Batch& batch, const Pass& pass, double scale);
  bool worth_capturing(const std::vector<WeighedBatch>& batches) const;
  void capture(const WeighedBatch& like);

  TrainConfig train_;
  World* world_;
  Communicator* others_;  // null: there are none, and nothing to add up
  std::unique_ptr<SequenceModel> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<ParameterOffload> offload_;  // by train.parameters
  std::unique_ptr<GradientSum> gradient_sum_;  // of several ranks
  std::unique_ptr<CapturedGradients> captured_;
  double time_share_ = 0;
  int64_t computed_ = 0;  // steps, as they came
  Shape last_;            // of the last step's batch
  bool capturable_ = true;
};

}  // namespace reformer
