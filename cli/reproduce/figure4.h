// `reformer reproduce figure4`: LSH attention with 1, 2, 4 and 8 rounds against
// full attention (paper Sec. 5, Figure 4); and, ours, a local window with 1, 2
// and 4 rounds.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_reproduce_figure4(CLI::App& reproduce, Action& action);

}  // namespace reformer::cli
