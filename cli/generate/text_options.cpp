#include "cli/generate/text_options.h"

#include <unistd.h>

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

void add_repetition_options(CLI::App& command, SamplerConfig& sampler) {
  command
      .add_option("--repetition-penalty", sampler.repetition_penalty,
                  "lowers logits of recent tokens: divides positive ones and "
                  "multiplies negative ones by X; 1: none")
      ->check(number(0, 1e9))
      ->type_name("X")
      ->capture_default_str();
  command
      .add_option("--repetition-window", sampler.repetition_window,
                  "how many last tokens, the prompt's too, are recent; 0: all")
      ->check(whole_number(0, kMaxLength))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace reformer::cli
