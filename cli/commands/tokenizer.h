// `reformer tokenizer`: makes a SentencePiece model, and tries it.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_tokenizer(CLI::App& app, Action& action);

}  // namespace reformer::cli
