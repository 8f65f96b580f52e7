// What a model is worth on data that it was not trained on.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reformer/distributed/world.h"
#include "reformer/model/language_model.h"
#include "reformer/model/parameter.h"
#include "reformer/model/sequence_model.h"
#include "reformer/tasks/task.h"

namespace reformer {

struct Evaluation {
  int64_t step = 0;
  double loss = 0;  // mean, in nats
  double accuracy = 0;
  double metric = 0;  // the task's units
  bool best = false;
};

// Told before each batch how many of how many are done. What it throws ends the
// evaluation.
using EvaluationProgress = std::function<void(int64_t done, int64_t all)>;

// What is evaluated of a task, and how.
//
// The ranks of a `world` share the batches (those that share sequences each
// batch), call alike, and all get the figures of all, the same on each; against
// one rank's they are added up in another order. Batches need not divide by
// ranks: in the last turn some have none. `progress` is then told on all ranks,
// before as many batches as are taken at a time.
struct EvaluatedSplit {
  Split split = Split::kValidation;
  int64_t batches = 0;  // at most; 0: all of the split's
  int64_t rounds = 0;   // hash rounds; 0: training's
  EvaluationProgress progress = {};
  World* world = nullptr;
};

// The mean over all that counts.
Evaluation evaluate(const SequenceModel& model, const Task& task,
                    const EvaluatedSplit& of);

// The mean loss at each position of a sequence, NaN where nothing counted;
// throws Error where one that counted is not finite.
std::vector<double> losses_by_position(const LanguageModel& model,
                                       const Task& task,
                                       const EvaluatedSplit& of);

// What counts of tokens that are found at least `begin` and less than `end`
// positions back.
struct DistanceSums {
  int64_t begin = 0;
  int64_t end = 0;
  LossSums sums;
};

// A split by Batch::distances, in octaves; those without a token are left out.
// Throws Error for a task that knows no distances.
std::vector<DistanceSums> sums_by_distance(const LanguageModel& model,
                                           const Task& task,
                                           const EvaluatedSplit& of);

// A model with a checkpoint's parameters; throws Error when they do not fit.
void load_parameters(SequenceModel& model,
                     const std::vector<NamedTensor>& parameters);

}  // namespace reformer
