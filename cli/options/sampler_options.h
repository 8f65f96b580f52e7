// The options of drawing tokens, for all commands that do.
#pragma once

#include <vector>

#include "cli/options/command_line.h"
#include "reformer/generate/sampler.h"

namespace reformer::cli {

// --temperature, --top-k, --top-p and --seed, in this order.
std::vector<CLI::Option*> add_sampler_options(CLI::App& command,
                                              SamplerConfig& sampler);

}  // namespace reformer::cli
