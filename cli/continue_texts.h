// `reformer generate DIR` of a model of texts or numbers: prompts, and how the
// model goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "reformer/core/config.h"
#include "reformer/generate/sampler.h"
#include "reformer/model/language_model.h"

namespace reformer::cli {

struct ContinueTextsOptions {
  std::vector<std::string> prompts;
  std::vector<std::string> files;  // or the prompts that these hold
  int64_t length = 0;              // 0: 256, or what fits

  void add_to(CLI::App& command);
  bool given() const;
};

// Prints the continuation of one prompt symbol by symbol, those of several,
// which are made together, one after the other at the end, each below a line
// with its number. Throws Error, before anything is printed, for a prompt that
// is no text of the model or leaves no room.
void continue_texts(const ContinueTextsOptions& options,
                    const SamplerConfig& sampler, int64_t rounds,
                    const LanguageModel& model);

}  // namespace reformer::cli
