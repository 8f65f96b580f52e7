// `reformer help COMMAND`: what COMMAND --help says.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

// After all other commands.
void add_help(CLI::App& app, Action& action);

}  // namespace reformer::cli
