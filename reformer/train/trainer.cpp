#include "reformer/train/trainer.h"

#include <sys/resource.h>

#include <cmath>

#include "reformer/base/clock.h"
#include "reformer/base/errors.h"
#include "reformer/base/parallel.h"
#include "reformer/config/config_json.h"
#include "reformer/data/data_identity.h"
#include "reformer/device/memory_meter.h"
#include "reformer/io/checkpoint.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/checkpoint_rows.h"
#include "reformer/train/batch_source.h"
#include "reformer/train/learner.h"
#include "reformer/train/not_finite.h"
#include "reformer/train/rank_facts.h"
#include "reformer/train/run_report.h"
#include "reformer/train/sample.h"
#include "reformer/train/save_run.h"

namespace reformer {
namespace {

int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

// A run that was begun on a GPU may go on on a CPU.
Placement placement_of(const RunPlace& place, Precision precision) {
  return place.resume ? placement_of_trained(place.device, precision)
                      : placement_on(place.device, precision);
}

class Run {
 public:
  Run(const Config& config, const Task& task,
      const std::vector<DataIdentity>& data, const RunPlace& place,
      TrainObserver& observer)
      : config_(config),
        task_(task),
        data_(data),
        directory_(place.directory),
        world_(place.world),
        observer_(observer),
        report_(place.directory, place.world, observer),
        device_meter_(place.device.is_cpu()
                          ? nullptr
                          : std::make_unique<MemoryMeter>(place.device)),
        learner_(config, placement_of(place, config.train.precision),
                 place.world),
        batches_(batches_from(0)) {}

  // Where the folder's newest checkpoint left off. Of the optimizer's state
  // this rank reads what it keeps.
  void restore(const Checkpoint& checkpoint) {
    learner_.initialize(checkpoint.parameters);
    restore_optimizer(checkpoint.step);
    step_ = saved_step_ = checkpoint.step;
    batches_ = batches_from(checkpoint.data_position);
    evaluated_step_ = checkpoint.evaluated_step;
    best_loss_ = checkpoint.best_loss;
    // Older programs took a first loss of NaN for the best, which none beats.
    has_best_ = checkpoint.has_best && std::isfinite(checkpoint.best_loss);
    seconds_before_ = checkpoint.seconds;
    warn_of_changes(checkpoint);
  }

  // Nothing but a checkpoint tells a run that goes on what it began with, so
  // that there is one before its folder holds a run.
  void begin_with(const std::vector<NamedTensor>& parameters) {
    try {
      learner_.initialize(parameters);
    } catch (const Error& error) {
      throw Error("--init: another model than the config's: " +
                  std::string(error.what()) +
                  "; without a CONFIG the model's own is taken");
    }
    saved_step_ = -1;
  }

  // Nothing is left to do: all steps are done, or all minutes, and evaluated.
  bool is_over() {
    started_ = steady_seconds();
    return step_ > 0 && evaluated_step_ == step_ &&
           (step_ >= config_.train.steps || out_of_time());
  }

  TrainResult result_before() const {
    return {TrainEnd::kBefore, step_, seconds_before_, evaluation_};
  }

  TrainResult run(const std::atomic<bool>& stop) {
    started_ = steady_seconds();  // what is saved first tells the time, too
    learner_.share_parameters();
    // With a checkpoint to begin with the folder holds nothing before it.
    if (saved_step_ != step_) save(/*best=*/false);
    if (first()) write_run_settings(directory_, config_, tokenizer_file(task_));
    report_.begin({step_, evaluated_step_ == step_});
    report_.begin_window();
    started_ = steady_seconds();
    TrainResult result;
    if (due(config_.train.evaluate_every)) evaluate_now(stop);
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
      if (due(config_.train.checkpoint_every)) save(/*best=*/false);
      // The last one comes after the last save, below.
      if (due(config_.train.evaluate_every) && !reason_to_end(stop)) {
        evaluate_now(stop);
      }
    }
    take_numbers();
    // Whatever happens from here on, no step is lost.
    if (saved_step_ != step_) save(/*best=*/false);
    // An interrupted run ends at once; one that is done also evaluates.
    if (result.end != TrainEnd::kStopped && !evaluate_now(stop)) {
      result.end = TrainEnd::kStopped;
    }
    result.step = step_;
    result.seconds = seconds();
    result.evaluation = evaluation_;
    return result;
  }

 private:
  void restore_optimizer(int64_t step) {
    auto& optimizer = learner_.optimizer();
    CheckpointPart reader;
    if (optimizer.shared()) {
      reader = {size_t(world_->ranks().rank), size_t(world_->ranks().size)};
    }
    const auto kept = load_optimizer_rows(
        directory_, step, reader,
        [&](const std::string& name, at::IntArrayRef sizes) {
          return optimizer.kept_rows(name, sizes);
        });
    if (!kept.empty()) optimizer.load_state(kept);
  }

  std::unique_ptr<BatchSource> batches_from(int64_t position) const {
    return std::make_unique<BatchSource>(task_, config_.train.accumulate,
                                         position, /*ahead=*/!on_cpu());
  }

  // Each read once: a signal may come between two readings.
  std::optional<TrainEnd> reason_to_end(const std::atomic<bool>& stop) const {
    if (step_ >= config_.train.steps) return TrainEnd::kSteps;
    if (any(stop)) return TrainEnd::kStopped;
    // However short the time, of a run without a step there is nothing to save.
    if (step_ > 0 && out_of_time()) return TrainEnd::kMinutes;
    return {};
  }

  bool first() const { return world_ == nullptr || world_->first(); }

  // On all ranks, so that they do the same from here on.
  bool any(bool yes) const {
    return world_ == nullptr ? yes : world_->any(yes);
  }

  double seconds() const {
    return seconds_before_ + steady_seconds() - started_;
  }
  // Likewise by one clock.
  double common_seconds() const {
    return world_ == nullptr ? seconds() : world_->first_ones(seconds());
  }
  bool out_of_time() const {
    return config_.train.minutes > 0 &&
           common_seconds() >= config_.train.minutes * 60;
  }
  bool due(int64_t every) const {
    return every > 0 && step_ > 0 && step_ % every == 0;
  }

  void take_step() {
    if (config_.train.minutes > 0) {
      learner_.set_time_share(common_seconds() / (config_.train.minutes * 60));
    }
    const double asked = steady_seconds();
    const auto batches = batches_->next();
    report_.add_data_wait(steady_seconds() - asked);
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
    if (!numbers.finite()) {
      throw CommonError("train: the loss is not finite at step " +
                        std::to_string(pending_->step) +
                        rank_not_finite(numbers, world_) + "; " +
                        way_on_from_not_finite(directory_, pending_->step));
    }
    report_.add(numbers, pending_->tokens);
    pending_.reset();
  }

  void report() {
    Progress progress;
    progress.step = step_;
    progress.steps = config_.train.steps;
    progress.learning_rate = learning_rate_;
    progress.seconds_left = seconds_left();
    progress.overflow = overflow();
    progress.memory_bytes =
        device_meter_ ? device_meter_->peak_bytes() : peak_memory_bytes();
    report_.progress(progress);
  }

  // Of one sequence: a sample, at the price of a fraction of a step.
  double overflow() const {
    return learner_.model().overflow(
        first_sequence(task_.training_batch(batches_->position() - 1)),
        learner_.pass(step_));
  }

  double seconds_left() const {
    const double per_step =
        (steady_seconds() - started_) / double(step_ - first_step_);
    const double by_steps = per_step * double(config_.train.steps - step_);
    if (config_.train.minutes <= 0) return by_steps;
    return std::min(by_steps, config_.train.minutes * 60 - seconds());
  }

  // Unless this step has been evaluated. False where it was stopped in it.
  bool evaluate_now(const std::atomic<bool>& stop) {
    if (evaluated_step_ == step_) return true;
    const double began = steady_seconds();
    struct Stopped {};
    bool finished = true;
    try {
      const EvaluatedSplit of{Split::kValidation,
                              config_.train.evaluate_batches, /*rounds=*/0,
                              [&](int64_t done, int64_t all) {
                                if (any(stop)) throw Stopped();
                                observer_.evaluating(done, all);
                              },
                              world_};
      take_evaluation(evaluate(learner_.model(), task_, of));
      if (first() && !stop) write_sample();
    } catch (const Stopped&) {
      finished = false;
    }
    report_.leave_out(steady_seconds() - began);
    return finished;
  }

  void write_sample() {
    const World::Busy busy(world_);
    const std::string text = sample_of(learner_, task_);
    if (text.empty()) return;
    report_.sampled(step_, text);
  }

  void take_evaluation(const Evaluation& evaluation) {
    evaluation_ = evaluation;
    evaluation_.step = evaluated_step_ = step_;
    evaluation_.best = std::isfinite(evaluation_.loss) &&
                       (!has_best_ || evaluation_.loss < best_loss_);
    if (evaluation_.best) {
      best_loss_ = evaluation_.loss;
      has_best_ = true;
    }
    report_.evaluated(evaluation_, task_);
    if (saved_step_ == step_) {
      if (first())
        record_evaluation(directory_,
                          {step_, best_loss_, has_best_, evaluation_.best});
    } else if (evaluation_.best) {
      save(/*best=*/true);
    }
    observer_.evaluated(evaluation_);
  }

  void save(bool best) {
    saved_step_ = step_;
    Checkpoint checkpoint = checkpoint_of(learner_, step_);
    const bool in_parts = learner_.optimizer().shared();
    if (!first() && !in_parts) return;
    const World::Busy busy(world_);
    checkpoint.data_position = batches_->position();
    checkpoint.evaluated_step = evaluated_step_;
    checkpoint.data = data_;
    checkpoint.tokenizer = tokenizer_file(task_);
    checkpoint.best_loss = best_loss_;
    checkpoint.has_best = has_best_;
    checkpoint.seconds = seconds();
    try {
      if (in_parts) {
        save_in_parts(directory_, checkpoint, best, *world_);
      } else {
        save_checkpoint(directory_, checkpoint, best);
      }
    } catch (const NotFinite& error) {
      const std::string sentence =
          "train: " + std::string(error.what()) + "; " +
          way_on_from_not_finite(directory_, step_ + 1);
      if (in_parts) throw CommonError(sentence);  // all were told
      throw Error(sentence);
    }
    observer_.saved(step_);
  }

  bool on_cpu() const { return learner_.model().placement().device.is_cpu(); }

  void warn_of_changes(const Checkpoint& checkpoint) {
    first_step_ = checkpoint.step;
    if (checkpoint.instruction_set ==
            kernels_on(learner_.model().placement().device) &&
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
  const std::vector<DataIdentity> data_;
  const std::string directory_;
  World* const world_;
  TrainObserver& observer_;
  RunReport report_;
  std::unique_ptr<MemoryMeter> device_meter_;  // of a GPU; before the learner
  Learner learner_;
  std::unique_ptr<BatchSource> batches_;

  int64_t step_ = 0;        // done
  int64_t first_step_ = 0;  // done when this process began
  int64_t saved_step_ = 0;
  int64_t evaluated_step_ = -1;
  double best_loss_ = 0;
  bool has_best_ = false;
  double seconds_before_ = 0;
  double started_ = 0;
  Evaluation evaluation_{-1, 0, 0, 0, false};

  std::optional<StepGradients> pending_;
  double learning_rate_ = 0;
};

// Other data throw Error unless they are allowed. Losses on other data are no
// measure of what is best.
void check_data(Checkpoint& checkpoint, const std::vector<DataIdentity>& data,
                const RunPlace& place, TrainObserver& observer) {
  const std::string changed = changed_data(checkpoint.data, data);
  if (changed.empty()) return;
  require(place.allow_other_data, place.directory,
          ": the data are not those of the run: ", changed,
          "; give the same, or go on with others by --allow-other-data");
  observer.warned("the data are not those of the run: " + changed +
                  "; it goes on, but not bit for bit");
  checkpoint.has_best = false;
}

RunLock locked(const Config& config, const Task& task, const RunPlace& place) {
  if (place.resume) return RunLock(place.directory);
  if (!place.parameters.empty()) return take_run_directory(place.directory);
  return create_run_directory(place.directory, config, tokenizer_file(task));
}

}  // namespace

TrainResult train(const Config& config, const Task& task, const RunPlace& place,
                  const std::atomic<bool>& stop, TrainObserver& given) {
  const bool first = place.world == nullptr || place.world->first();
  TrainObserver nobody;
  TrainObserver& observer = first ? given : nobody;
  const auto data = task.data();
  auto opening = std::make_optional<World::Busy>(place.world);
  std::optional<RunLock> lock;
  const auto take_folder = [&] {
    if (!first || lock) return;
    lock.emplace(locked(config, task, place));
    if (!lock->warning().empty()) observer.warned(lock->warning());
    observer.began();
  };
  // Weights that do not fit leave no folder behind.
  if (place.parameters.empty()) take_folder();
  std::optional<Checkpoint> checkpoint;
  if (place.resume) checkpoint = load_latest_model(place.directory);
  if (checkpoint) check_data(*checkpoint, data, place, observer);
  opening.reset();
  if (place.world != nullptr) {
    place.world->require_alike(
        rank_facts(config, task, place.device, checkpoint));
  }
  auto busy = std::make_optional<World::Busy>(place.world);
  Run run(config, task, data, place, observer);
  const bool resumed = checkpoint.has_value();
  if (resumed) {
    run.restore(*checkpoint);
    checkpoint.reset();
  } else if (!place.parameters.empty()) {
    run.begin_with(place.parameters);
  }
  take_folder();
  busy.reset();
  // All have read what is newest, or a damaged one's way on is an older one.
  if (place.world != nullptr) place.world->control().barrier();
  if (first) finish_saving(place.directory, config.train.keep);
  if (resumed && run.is_over()) return run.result_before();
  return run.run(stop);
}

}  // namespace reformer
