#include "cli/generate/text_options.h"

#include <unistd.h>

#include <limits>

namespace reformer::cli {
namespace {

constexpr int64_t kDefaultLength = 256;

void add_prompt_options(CLI::App& command, TextOptions& options) {
  auto* texts =
      command
          .add_option("--prompt", options.prompts,
                      "what to continue; of duplication and recall: numbers; "
                      "several are continued together")
          ->allow_extra_args(false)
          ->type_name("TEXT");
  command
      .add_option("--prompt-file", options.files,
                  "a file that holds what to continue; -: standard input; "
                  "several are continued together")
      ->allow_extra_args(false)
      ->type_name("FILE")
      ->excludes(texts);
}

void add_output_options(CLI::App& command, TextOptions& options) {
  auto* show = command.add_flag(
      "--show-prompt", options.show_prompt,
      "print each prompt before its continuation [on a terminal, unless "
      "--interactive; not in a pipe]");
  command
      .add_flag("--hide-prompt", options.hide_prompt,
                "print the continuation alone, on a terminal too")
      ->excludes(show);
  command.add_flag(
      "--json", options.json,
      "an object a line for each prompt: prompt, text, tokens, ended (length, "
      "stop, interrupted), stop, seconds, tokens_per_s, seed");
  command.add_flag(
      "--interactive", options.interactive,
      "continue lines of standard input one by one, each after all before it; "
      "an empty line: go on; Ctrl-C ends an answer, Ctrl-D the session");
}

}  // namespace

void TextOptions::add_to(CLI::App& command) {
  add_prompt_options(command, *this);
  command
      .add_option("--length", length,
                  "tokens to generate; where a model's positions end, it goes "
                  "on from the last half of them [" +
                      std::to_string(kDefaultLength) + "]")
      ->check(whole_number(1, kMaxLength))
      ->type_name("N");
  command
      .add_option("--stop", stops,
                  "end before this text, which is not printed; may be given "
                  "several times")
      ->allow_extra_args(false)
      ->check(not_empty())
      ->type_name("TEXT");
  add_output_options(command, *this);
}

bool TextOptions::given() const {
  return !prompts.empty() || !files.empty() || length || !stops.empty() ||
         show_prompt || hide_prompt || json || interactive;
}

int64_t TextOptions::length_or_default() const {
  return length.value_or(kDefaultLength);
}

bool TextOptions::shows_prompt() const {
  if (show_prompt || hide_prompt) return show_prompt;
  return !interactive && isatty(STDOUT_FILENO) == 1;
}

void add_sampler_options(CLI::App& command, SamplerConfig& sampler) {
  const auto add = [&](const char* name, auto& value, const char* help,
                       const CLI::Validator& check, const char* type) {
    command.add_option(name, value, help)
        ->check(check)
        ->type_name(type)
        ->capture_default_str();
  };
  add("--temperature", sampler.temperature,
      "divides the logits; 0: always the most probable token", number(0, 1e9),
      "T");
  add("--top-k", sampler.top_k, "only the K most probable tokens; 0: all",
      whole_number(0, kMaxLength), "K");
  add("--top-p", sampler.top_p,
      "of those, the fewest whose probabilities reach P", number(0, 1), "P");
  add("--repetition-penalty", sampler.repetition_penalty,
      "lowers logits of recent tokens: divides positive ones and multiplies "
      "negative ones by X; 1: none",
      number(0, 1e9), "X");
  add("--repetition-window", sampler.repetition_window,
      "how many last tokens, the prompt's too, are recent; 0: all",
      whole_number(0, kMaxLength), "N");
  add("--seed", sampler.seed, "the same seed, the same text",
      whole_number(0, std::numeric_limits<int64_t>::max()), "N");
}

}  // namespace reformer::cli
