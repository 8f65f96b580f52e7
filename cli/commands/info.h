// `reformer info CONFIG|DIR`: what a model is made of and what a training step
// of it will take, before anything runs.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_info(CLI::App& app, Action& action);

}  // namespace reformer::cli
