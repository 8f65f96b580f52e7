// `reformer bench generate`: how long does a token take, and does that grow
// with the length of the text before it?
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_bench_generate(CLI::App& bench, Action& action);

}  // namespace reformer::cli
