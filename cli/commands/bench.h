// `reformer bench NAME`: measurements, each of one question.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_bench(CLI::App& app, Action& action);

}  // namespace reformer::cli
