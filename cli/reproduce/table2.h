// `reformer reproduce table2`: the duplication task, trained with full
// attention and with 4, 2 and 1 hash rounds, each evaluated with full attention
// and with 8, 4, 2 and 1 (paper Sec. 5, Table 2).
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_reproduce_table2(CLI::App& reproduce, Action& action);

}  // namespace reformer::cli
