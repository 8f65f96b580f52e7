// What `reformer eval` evaluates: a run's checkpoint, and its task at each of
// the lengths that were asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cli/eval/eval_options.h"
#include "reformer/io/checkpoint.h"
#include "reformer/tasks/task.h"

namespace reformer::cli {

struct Sequences {
  int64_t length;
  std::unique_ptr<Task> task;
};

// Throws Error where the options do not fit the run, before data are opened.
struct EvaluatedRun {
  explicit EvaluatedRun(const EvalOptions& options);

  Checkpoint checkpoint;             // config: with the options' settings
  std::vector<Sequences> sequences;  // each length once
  std::vector<int64_t> rounds;       // likewise
};

}  // namespace reformer::cli
