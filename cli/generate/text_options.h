// The options of `reformer generate` on texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/command_line.h"
#include "reformer/generate/sampler.h"

namespace reformer::cli {

struct TextOptions {
  std::vector<std::string> prompts;
  std::vector<std::string> files;  // or the prompts that these hold
  std::optional<int64_t> length;
  std::vector<std::string> stops;
  bool show_prompt = false;
  bool hide_prompt = false;
  bool json = false;
  bool interactive = false;

  void add_to(CLI::App& command);

  // Any of them: they are not for images.
  bool given() const;

  int64_t length_or_default() const;

  // As asked for; else where people read: on a terminal, not in a session,
  // whose lines stand there already.
  bool shows_prompt() const;
};

void add_repetition_options(CLI::App& command, SamplerConfig& sampler);

}  // namespace reformer::cli
