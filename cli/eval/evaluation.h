// `reformer eval`, of one run: its text or JSON lines, and its picture.
#pragma once

#include "cli/eval/eval_options.h"

namespace reformer::cli {

void evaluate_run(const EvalOptions& options);

}  // namespace reformer::cli
