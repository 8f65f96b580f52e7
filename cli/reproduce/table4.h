// reformer reproduce table4: translation by plain and reversible models.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_reproduce_table4(CLI::App& reproduce, Action& action);

}  // namespace reformer::cli
