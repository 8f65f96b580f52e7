// `reformer reproduce figure3`: what sharing queries and keys, and what
// reversible blocks, do to an ordinary Transformer (paper Sec. 5, Figure 3).
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_reproduce_figure3(CLI::App& reproduce, Action& action);

}  // namespace reformer::cli
