// `reformer plot DIR...`: the loss curves of one or several runs.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_plot(CLI::App& app, Action& action);

}  // namespace reformer::cli
