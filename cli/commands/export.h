// reformer export: a trained model for use elsewhere.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_export(CLI::App& app, Action& action);

}  // namespace reformer::cli
