// `reformer bleu`: how near translations are to their references.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_bleu(CLI::App& app, Action& action);

}  // namespace reformer::cli
