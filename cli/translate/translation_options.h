// How translations are searched for, for all commands that translate.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "cli/options/command_line.h"
#include "reformer/generate/translator.h"

namespace reformer::cli {

struct TranslationOptions {
  int64_t beam = 4;
  double length_penalty = 0.6;
  int64_t batch = 0;  // 0: by the device
  int64_t n_best = 1;
  int64_t longer = 50;
  int64_t rounds = 0;
  bool sample = false;
  SamplerConfig sampler;

  void add_to(CLI::App& command);

  // Its end token is not set.
  TranslatorConfig config(c10::Device device) const;
};

// Sentences at a time where nobody says otherwise.
int64_t translation_batch(c10::Device device);

}  // namespace reformer::cli
