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

// The mean over a split, at most `batches` of its batches (0: all). The ranks
// of a `world` share the batches, and all of them get the mean over all;
// `progress` is then told together, before as many batches as there are ranks.
Evaluation evaluate(const SequenceModel& model, const Task& task, Split split,
                    int64_t batches, int64_t rounds,
                    const EvaluationProgress& progress = {},
                    World* world = nullptr);

// The mean loss at each position of a sequence, NaN where nothing counted;
// throws Error where one that counted is not finite.
std::vector<double> losses_by_position(const LanguageModel& model,
                                       const Task& task, Split split,
                                       int64_t batches, int64_t rounds,
                                       const EvaluationProgress& progress = {});

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
                                           const Task& task, Split split,
                                           int64_t batches, int64_t rounds,
                                           const EvaluationProgress& = {});

// A model with a checkpoint's parameters; throws Error when they do not fit.
void load_parameters(SequenceModel& model,
                     const std::vector<NamedTensor>& parameters);

}  // namespace reformer
