// reformer average.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_average(CLI::App& app, Action& action);

}  // namespace reformer::cli
