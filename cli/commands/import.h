// reformer import: a Reformer of Hugging Face's.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_import(CLI::App& app, Action& action);

}  // namespace reformer::cli
