// `reformer eval DIR`: how good a trained model is.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_eval(CLI::App& app, Action& action);

}  // namespace reformer::cli
