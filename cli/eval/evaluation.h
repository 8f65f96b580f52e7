// `reformer eval`, of one run: its text or JSON lines, and its picture.
#pragma once

#include <c10/core/Device.h>

#include "cli/eval/eval_options.h"
#include "reformer/distributed/world.h"

namespace reformer::cli {

// Of several ranks all were told to stop, and stop together.
class StoppedTogether {};

// The ranks of a `world` share the work, and call alike; its first one speaks.
// Throws Interrupted where this process was told to stop, or with a world
// StoppedTogether on all ranks.
void evaluate_run(const EvalOptions& options, c10::Device device, World* world);

}  // namespace reformer::cli
