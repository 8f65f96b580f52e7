// `reformer generate DIR` of a model of texts or numbers: prompts, and how the
// model goes on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options/command_line.h"
#include "reformer/config/config.h"
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

struct Prompts {
  at::Tensor tokens;             // [prompts, the longest]
  std::vector<int64_t> lengths;  // of each

  int64_t count() const { return tokens.size(0); }
  int64_t longest() const { return tokens.size(1); }
};

// As many as were given, or an empty one. Throws Error for what is no text of
// the model.
Prompts prompts_of(const ContinueTextsOptions& options, const Config& config);

// Prints the continuation of one prompt token by token, those of several,
// which are made together, one after the other at the end, each below a line
// with its number. Throws Error, before anything is printed, where a prompt
// leaves no room for `length` tokens (0: 256, or what fits).
void continue_texts(const Prompts& prompts, int64_t length,
                    const SamplerConfig& sampler, int64_t rounds,
                    const LanguageModel& model);

}  // namespace reformer::cli
