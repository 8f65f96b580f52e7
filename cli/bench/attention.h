// `reformer bench attention`: how long does LSH attention take, how much
// memory, and how does exact attention compare?
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_bench_attention(CLI::App& bench, Action& action);

}  // namespace reformer::cli
