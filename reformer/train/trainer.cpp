#include "reformer/train/trainer.h"

#include <sys/resource.h>

#include <chrono>
#include <cmath>

#include "reformer/core/errors.h"
#include "reformer/core/instruction_set.h"
#include "reformer/core/parallel.h"
#include "reformer/ops/device.h"
#include "reformer/ops/memory_meter.h"
#include "reformer/train/batch_source.h"
#include "reformer/train/checkpoint.h"
#include "reformer/train/learner.h"
#include "reformer/train/metrics.h"

namespace reformer {
namespace {

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

// A run that was begun on a GPU may go on on a CPU.
Placement placement_of(const RunPlace& place, const std::string& precision) {
  return place.resume ? placement_of_trained(place.device, precision)
                      : placement_on(place.device, precision);
}

class Run {
 public:
  Run(const Config& config, const Task& task, const RunPlace& place,
      TrainObserver& observer)
      : config_(config),
        task_(task),
        directory_(place.directory),
        observer_(observer),
        device_meter_(place.device.is_cpu()
                          ? nullptr
                          : std::make_unique<MemoryMeter>(place.device)),
        learner_(config, placement_of(place, config.train.precision)),
        batches_(batches_from(0)) {}

  // Where the folder's newest checkpoint left off.
  void restore(const Checkpoint& checkpoint) {
    learner_.load(checkpoint.parameters, checkpoint.optimizer);
    step_ = saved_step_ = checkpoint.step;
    batches_ = batches_from(checkpoint.data_position);
    best_loss_ = checkpoint.best_loss;
    has_best_ = checkpoint.has_best;
    seconds_before_ = checkpoint.seconds;
    warn_of_changes(checkpoint);
  }

  TrainResult run(const std::atomic<bool>& stop) {
    metrics_ = std::make_unique<MetricsWriter>(directory_, step_);
    started_ = window_started_ = now();
    TrainResult result;
    while (true) {
      if (const auto end = reason_to_end(stop)) {
        result.end = *end;
        break;
      }
      take_step();
      if (due(config_.train.log_every) || due(config_.train.evaluate_every) ||
          due(config_.train.checkpoint_every)) {
        take_numbers();
      }
      if (due(config_.train.log_every)) report();
      if (due(config_.train.evaluate_every)) evaluate_now();
      if (due(config_.train.checkpoint_every)) save(/*best=*/false);
    }
    take_numbers();
    // An interrupted run saves at once; one that is done also evaluates.
    if (result.end != TrainEnd::kStopped && evaluation_.step != step_) {
      evaluate_now();
    }
    if (saved_step_ != step_) save(/*best=*/false);
    result.step = step_;
    result.seconds = seconds();
    result.evaluation = evaluation_;
    return result;
  }

 private:
  std::unique_ptr<BatchSource> batches_from(int64_t position) const {
    return std::make_unique<BatchSource>(task_, config_.train.accumulate,
                                         position, /*ahead=*/!on_cpu());
  }

  // Each read once: a signal may come between two readings.
  std::optional<TrainEnd> reason_to_end(const std::atomic<bool>& stop) const {
    if (step_ >= config_.train.steps) return TrainEnd::kSteps;
    if (stop) return TrainEnd::kStopped;
    if (out_of_time()) return TrainEnd::kMinutes;
    return {};
  }

  double seconds() const { return seconds_before_ + now() - started_; }
  bool out_of_time() const {
    return config_.train.minutes > 0 && seconds() >= config_.train.minutes * 60;
  }
  bool due(int64_t every) const { return every > 0 && step_ % every == 0; }

  void take_step() {
    const double asked = now();
    const auto batches = batches_->next();
    window_waited_ += now() - asked;
    const auto gradients = learner_.gradients(batches, step_ + 1);
    take_numbers();
    pending_ = gradients;
    // A GPU goes on meanwhile, and is found out one step later; a CPU has
    // finished.
    if (on_cpu()) take_numbers();
    ++step_;
    learning_rate_ = learner_.apply(step_);
  }

  // Reads the last step's numbers, before anything is made of them.
  void take_numbers() {
    if (!pending_) return;
    const auto numbers = pending_->read();
    require(numbers.finite(), "train: the loss is not finite at step ",
            pending_->step, "; ", what_is_saved(),
            "; try a smaller train.learning_rate, a longer train.warmup or a "
            "train.clip of 1");
    gradient_norm_ = numbers.norm;
    window_ += numbers.sums;
    window_tokens_ += pending_->tokens;
    pending_.reset();
  }

  std::string what_is_saved() const {
    if (saved_step_ == 0) return "nothing was saved yet";
    return "the checkpoint of step " + std::to_string(saved_step_) + " in " +
           directory_ + " is the last good one";
  }

  void report() {
    const double elapsed = now() - window_started_;
    Progress progress;
    progress.step = step_;
    progress.steps = config_.train.steps;
    progress.loss = window_.mean_loss();
    progress.accuracy = window_.accuracy();
    progress.learning_rate = learning_rate_;
    progress.gradient_norm = gradient_norm_;
    progress.tokens_per_second = double(window_tokens_) / elapsed;
    progress.seconds_left = seconds_left();
    progress.overflow = overflow();
    progress.memory_bytes =
        device_meter_ ? device_meter_->peak_bytes() : peak_memory_bytes();
    metrics_->write(step_,
                    {{"train/loss", progress.loss},
                     {"train/accuracy", progress.accuracy},
                     {"train/learning_rate", progress.learning_rate},
                     {"train/gradient_norm", progress.gradient_norm},
                     {"train/tokens_per_second", progress.tokens_per_second},
                     {"train/data_wait", window_waited_ / elapsed},
                     {"train/lsh_overflow", progress.overflow}});
    observer_.progress(progress);
    window_ = {};
    window_tokens_ = 0;
    window_waited_ = 0;
    window_started_ = now();
  }

  // Of one sequence: a sample, at the price of a fraction of a step.
  double overflow() const {
    const Batch batch = task_.training_batch(batches_->position() - 1);
    return learner_.model().overflow(batch.symbols.narrow(0, 0, 1),
                                     learner_.pass(step_));
  }

  double seconds_left() const {
    const double per_step = (now() - started_) / double(step_ - first_step_);
    const double by_steps = per_step * double(config_.train.steps - step_);
    if (config_.train.minutes <= 0) return by_steps;
    return std::min(by_steps, config_.train.minutes * 60 - seconds());
  }

  void evaluate_now() {
    const double began = now();
    evaluation_ =
        reformer::evaluate(learner_.model(), task_, Split::kValidation,
                           config_.train.evaluate_batches, 0);
    evaluation_.step = step_;
    evaluation_.best = !has_best_ || evaluation_.loss < best_loss_;
    Scalars scalars{{"validation/loss", evaluation_.loss},
                    {"validation/accuracy", evaluation_.accuracy}};
    if (task_.metric_name() != "loss") {
      scalars.emplace_back("validation/" + task_.metric_name(),
                           evaluation_.metric);
    }
    metrics_->write(step_, scalars);
    if (evaluation_.best) {
      best_loss_ = evaluation_.loss;
      has_best_ = true;
      save(/*best=*/true);
    }
    observer_.evaluated(evaluation_);
    window_started_ += now() - began;  // not training time
  }

  void save(bool best) {
    learner_.settle();
    Checkpoint checkpoint;
    checkpoint.config = config_;
    checkpoint.step = step_;
    checkpoint.data_position = batches_->position();
    checkpoint.best_loss = best_loss_;
    checkpoint.has_best = has_best_;
    checkpoint.seconds = seconds();
    checkpoint.threads = threads();
    checkpoint.instruction_set = kernels();
    for (const auto& parameter : learner_.model().parameters()) {
      checkpoint.parameters.push_back(
          {parameter.name, parameter.value.detach()});
    }
    checkpoint.optimizer = learner_.optimizer().state();
    save_checkpoint(directory_, checkpoint, best);
    saved_step_ = step_;
    observer_.saved(step_);
  }

  bool on_cpu() const { return learner_.model().placement().device.is_cpu(); }

  // Whose bits differ.
  std::string kernels() const {
    return on_cpu() ? name_of(instruction_set())
                    : cuda_device_name(learner_.model().placement().device);
  }

  void warn_of_changes(const Checkpoint& checkpoint) {
    first_step_ = checkpoint.step;
    if (checkpoint.instruction_set == kernels() &&
        (!on_cpu() || checkpoint.threads == threads())) {
      return;
    }
    observer_.warned("this run began with " +
                     std::to_string(checkpoint.threads) + " threads and " +
                     checkpoint.instruction_set +
                     " kernels: it goes on, but not bit for bit");
  }

  const Config config_;
  const Task& task_;
  const std::string directory_;
  TrainObserver& observer_;
  std::unique_ptr<MemoryMeter> device_meter_;  // of a GPU; before the learner
  Learner learner_;
  std::unique_ptr<BatchSource> batches_;
  std::unique_ptr<MetricsWriter> metrics_;

  int64_t step_ = 0;        // done
  int64_t first_step_ = 0;  // done when this process began
  int64_t saved_step_ = 0;
  double best_loss_ = 0;
  bool has_best_ = false;
  double seconds_before_ = 0;
  double started_ = 0;
  Evaluation evaluation_{-1, 0, 0, 0, false};

  std::optional<StepGradients> pending_;

  // Since the last report.
  LossSums window_;
  int64_t window_tokens_ = 0;
  double window_waited_ = 0;  // seconds, for data
  double window_started_ = 0;
  double learning_rate_ = 0;
  double gradient_norm_ = 0;
};

}  // namespace

TrainResult train(const Config& config, const Task& task, const RunPlace& place,
                  const std::atomic<bool>& stop, TrainObserver& observer) {
  std::optional<Checkpoint> checkpoint;
  if (place.resume) {
    checkpoint = load_latest_checkpoint(place.directory);
  } else {
    create_run_directory(place.directory, config);
  }
  Run run(config, task, place, observer);
  if (checkpoint) run.restore(*checkpoint);
  return run.run(stop);
}

}  // namespace reformer
