// `reformer eval`, of one run: its text or JSON lines, and its picture.
#pragma once

#include <c10/core/Device.h>

#include "cli/eval/eval_options.h"
#include "reformer/distributed/world.h"

namespace reformer::cli {

// The ranks of a `world` share the work, and call alike; its first one speaks.
// Throws Interrupted where this process was told to stop.
void evaluate_run(const EvalOptions& options, c10::Device device, World* world);

}  // namespace reformer::cli
