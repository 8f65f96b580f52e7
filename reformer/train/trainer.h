// The training loop: batches, gradients, steps, evaluations, checkpoints.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "reformer/config/config.h"
#include "reformer/distributed/world.h"
#include "reformer/model/language_model.h"
#include "reformer/tasks/task.h"
#include "reformer/train/evaluation.h"

namespace reformer {

// Where a run stands, for whoever shows it.
struct Progress {
  int64_t step = 0;
  int64_t steps = 0;
  double loss = 0;  // mean since the last report, in nats
  double accuracy = 0;
  double learning_rate = 0;
  double gradient_norm = 0;
  double tokens_per_second = 0;
  double seconds_left = 0;
  double overflow = 0;       // of LSH windows, on one sequence
  int64_t memory_bytes = 0;  // the most held: by the process, or of the GPU
  int64_t ranks = 1;
  double waited = 0;  // share of the time in which rank 0 waited for others
};

// What happens in a run; the library itself prints nothing.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  // The run's folder is its own, and nothing has been computed for its steps.
  virtual void began() {}
  virtual void progress(const Progress&) {}
  // Before each of an evaluation's batches.
  virtual void evaluating(int64_t /*done*/, int64_t /*all*/) {}
  virtual void evaluated(const Evaluation&) {}
  // What the model writes by itself: train.sample_length tokens.
  virtual void sampled(int64_t /*step*/, const std::string& /*text*/) {}
  virtual void saved(int64_t /*step*/) {}
  virtual void warned(const std::string& /*sentence*/) {}
};

// kBefore: it was over before it began, and nothing was done.
enum class TrainEnd { kSteps, kMinutes, kStopped, kBefore };

struct TrainResult {
  TrainEnd end = TrainEnd::kSteps;
  int64_t step = 0;
  double seconds = 0;     // of training, over all resumptions
  Evaluation evaluation;  // this process's last one; of step -1: none
};

// Where and on what a run goes on.
struct RunPlace {
  std::string directory;
  bool resume = false;
  at::Device device = at::kCPU;
  bool allow_other_data = false;  // than the run began with
  // What a new run begins with, in place of what config.train.seed draws.
  std::vector<NamedTensor> parameters = {};
  // The ranks that train together, null: this is the only one. All of them call
  // `train` alike; rank 0 alone writes files and has its observer told. They
  // must be alike in config, data and machine.
  World* world = nullptr;
};

// Trains `config` in `place`. A new run needs a folder that holds none;
// with `resume` it goes on from the folder's newest checkpoint, bit for bit as
// if it had never stopped (on the same device, instruction set and thread
// count; a change is a warning). Data other than the run began with throw Error
// unless allowed; then they are a warning too. While it goes on it holds the
// folder's RunLock. `stop`, once true, ends it after the step or the batch of
// an evaluation under way. However it ends, it saves before it evaluates for
// the last time; an evaluation that was not finished comes first when the run
// goes on. A loss, parameter or optimizer state that is not finite throws Error
// and leaves the last good checkpoint; it is never saved.
TrainResult train(const Config& config, const Task& task, const RunPlace& place,
                  const std::atomic<bool>& stop, TrainObserver& observer);

}  // namespace reformer
