// `reformer generate DIR`: what a trained model writes, as it is made.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_generate(CLI::App& app, Action& action);

}  // namespace reformer::cli
