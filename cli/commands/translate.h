// reformer translate: lines of a file or of standard input.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_translate(CLI::App& app, Action& action);

}  // namespace reformer::cli
