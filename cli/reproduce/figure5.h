// `reformer reproduce figure5`: what depth buys and costs, and the time of a
// step against length at a fixed number of tokens (paper Sec. 5, Figure 5 and
// Table 3).
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_reproduce_figure5(CLI::App& reproduce, Action& action);

}  // namespace reformer::cli
