#include "cli/options/sampler_options.h"

#include <limits>

namespace reformer::cli {

std::vector<CLI::Option*> add_sampler_options(CLI::App& command,
                                              SamplerConfig& sampler) {
  std::vector<CLI::Option*> options;
  const auto add = [&](const char* name, auto& value, const char* help,
                       const CLI::Validator& check, const char* type) {
    options.push_back(command.add_option(name, value, help)
                          ->check(check)
                          ->type_name(type)
                          ->capture_default_str());
  };
  add("--temperature", sampler.temperature,
      "divides the logits; 0: always the most probable token", number(0, 1e9),
      "T");
  add("--top-k", sampler.top_k, "only the K most probable tokens; 0: all",
      whole_number(0, kMaxLength), "K");
  add("--top-p", sampler.top_p,
      "of those, the fewest whose probabilities reach P", number(0, 1), "P");
  add("--seed", sampler.seed, "the same seed, the same text",
      whole_number(0, std::numeric_limits<int64_t>::max()), "N");
  return options;
}

}  // namespace reformer::cli
