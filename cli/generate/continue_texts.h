// `reformer generate DIR` of a model of texts or numbers: prompts, and how the
// model goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/generate/answer.h"
#include "cli/generate/text_options.h"
#include "reformer/config/config.h"
#include "reformer/generate/completion.h"
#include "reformer/model/language_model.h"

namespace reformer::cli {

struct Prompts {
  std::vector<std::string> texts;            // as they were given
  std::vector<std::vector<int64_t>> tokens;  // of each

  int64_t count() const { return static_cast<int64_t>(texts.size()); }
  int64_t longest() const;
};

// As many as were given, or an empty one. Throws Error for what is no text of
// the model.
Prompts prompts_of(const TextOptions& options, const TokenWriting& writing);

// Prints continuations as AnswerPrinter does, which are made together. Those of
// an interrupted command are printed as far as they were made; then Interrupted
// is thrown.
void continue_texts(const Prompts& prompts, const TextOptions& options,
                    const TokenWriting& writing, const CompletionConfig& config,
                    const LanguageModel& model);

// Draws until all answers have ended, and prints them. Throws Interrupted, when
// texts that were begun have been printed.
void make_answers(Completion& completion, int64_t length,
                  std::vector<Answer>& answers, AnswerPrinter& printer);

// The last half of the positions' number is what the window keeps.
std::string note_on_window(int64_t positions);

}  // namespace reformer::cli
