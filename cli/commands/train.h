// `reformer train CONFIG --out DIR`: trains a model, shows how it goes, and
// goes on where it was with --resume.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_train(CLI::App& app, Action& action);

}  // namespace reformer::cli
