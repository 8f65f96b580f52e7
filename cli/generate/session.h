// `reformer generate DIR --interactive`: a text that a person and a model write
// in turns.
#pragma once

#include "cli/generate/continue_texts.h"

namespace reformer::cli {

// Continues lines of standard input, one by one, until there are no more. The
// text so far is what the next line is read after: the prompt, and lines and
// answers in turns. A line begins a new one, but right after a stop string,
// which stays in the text though it is not printed; an empty line adds nothing.
// Ctrl-C ends an answer. Throws Interrupted when another signal, or a Ctrl-C
// while nothing is typed, wishes it to end.
void hold_session(const Prompts& prompts, const TextOptions& options,
                  const TokenWriting& writing, const CompletionConfig& config,
                  const LanguageModel& model);

}  // namespace reformer::cli
