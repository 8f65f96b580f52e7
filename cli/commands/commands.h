// The subcommands of `reformer`, all of them.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

// `action` becomes what the command line asks for when `app` has parsed it.
void add_commands(CLI::App& app, Action& action);

}  // namespace reformer::cli
