// `reformer bench train`: how long does a whole training step take, and how
// much memory?
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_bench_train(CLI::App& bench, Action& action);

}  // namespace reformer::cli
