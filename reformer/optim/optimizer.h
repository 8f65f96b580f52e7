// Adafactor, Adam, AdamW and Muon.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reformer/config/config.h"
#include "reformer/model/parameter.h"
#include "reformer/model/row_range.h"

namespace reformer {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Updates every parameter from its gradient, in place; one without a gradient
  // stays as it is. Steps are counted inside, and the count is part of the
  // state. Parameters keep their order and number from call to call. The same
  // bits for any thread count (Muon: as far as LibTorch's matmuls are).
  void step(std::vector<Parameter>& parameters, double learning_rate) {
    begin_step();
    update(parameters, learning_rate);
  }

  // The same in pieces: one beginning, then updates of those parameters that
  // have a gradient at the time, each once.
  virtual void begin_step() = 0;
  virtual void update(std::vector<Parameter>& parameters,
                      double learning_rate) = 0;

  // What a checkpoint keeps, and what resumes from it bit for bit. state()
  // shares the optimizer's memory, which the next step overwrites, and where
  // ranks share it is this rank's part; load_state takes what this rank keeps
  // of the whole, copies, and throws Error for the state of other parameters or
  // of another optimizer.
  virtual std::vector<NamedTensor> state() const = 0;
  virtual void load_state(const std::vector<NamedTensor>& kept) = 0;

  // Whether other ranks have other parts of it.
  virtual bool shared() const { return false; }

  // What this rank keeps of the whole state's tensor `name`, of these sizes:
  // all, unless ranks share it; no rows of what others keep. Throws Error as
  // load_state does.
  virtual RowRange kept_rows(const std::string& /*name*/,
                             at::IntArrayRef sizes) const {
    return {0, row_count(sizes)};
  }
};

// By train.optimizer. Adafactor as the paper's authors used it: factored second
// moments over the last two dimensions for rank >= 2, the update times
// max(RMS(w), 1e-3), clipped at an RMS of 1, beta2(t) = 1 - (t + 1)^-0.8 with
// t = 0 at the first step, no momentum, 1e-30 added to g^2. Parameters are
// contiguous float32 or float64 on one device when they are updated, or Error
// is thrown.
std::unique_ptr<Optimizer> make_optimizer(
    const TrainConfig& config, const std::vector<Parameter>& parameters);

// The learning rate of step t = 1, 2, ... by train.schedule. constant and
// cosine rise in a straight line to c at step train.warmup; cosine then falls
// to 0 at step train.steps, or earlier: when `time_share`, which share of its
// time a run has had, is 1.
double learning_rate_at(const TrainConfig& config, int64_t step,
                        double time_share = 0);

// Scales all gradients so that their norm, taken together, is at most `most`
// (0: any), and returns the norm before, a scalar float64 on their device, for
// which nothing waits. A norm that is not finite is returned and the gradients
// are left alone (on a GPU they become that, too). The same bits for any thread
// count.
at::Tensor clip_gradients(std::vector<Parameter>& parameters, double most);

}  // namespace reformer
