// `reformer serve DIR`: a trained model in a browser, and over HTTP.
#pragma once

#include "cli/options/command_line.h"

namespace reformer::cli {

void add_serve(CLI::App& app, Action& action);

}  // namespace reformer::cli
