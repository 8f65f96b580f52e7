// `reformer settings`: every setting, what it may be and what it means.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_settings(CLI::App& app, Action& action);

}  // namespace reformer::cli
