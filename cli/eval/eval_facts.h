// What ranks compare before they evaluate together.
#pragma once

#include <c10/core/Device.h>

#include "cli/eval/eval_options.h"
#include "cli/eval/evaluated_run.h"
#include "reformer/distributed/world.h"

namespace reformer::cli {

// The program, what it was asked for, the run and its data.
RankFacts eval_facts(const EvalOptions& options, const EvaluatedRun& run,
                     c10::Device device);

}  // namespace reformer::cli
