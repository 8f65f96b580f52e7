// `reformer bench peak`: what share of the machine's matmul peak does
// the attention kernel reach, on the scores that it computes?
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_bench_peak(CLI::App& bench, Action& action);

}  // namespace reformer::cli
