// `reformer reproduce NAME`: the paper's tables and figures, one command each.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_reproduce(CLI::App& app, Action& action);

}  // namespace reformer::cli
