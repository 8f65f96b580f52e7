// reformer bench translate: target tokens a second.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_bench_translate(CLI::App& bench, Action& action);

}  // namespace reformer::cli
