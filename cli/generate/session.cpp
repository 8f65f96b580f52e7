#include "cli/generate/session.h"

#include <algorithm>
#include <csignal>

#include "cli/generate/prefill_screen.h"
#include "cli/process/line_input.h"
#include "cli/process/stop_signal.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"

namespace reformer::cli {
namespace {

class Session {
 public:
  Session(const Prompts& prompts, const TextOptions& options,
          const TokenWriting& writing, const CompletionConfig& config,
          const LanguageModel& model)
      : options_(options),
        style_{options.json, options.shows_prompt(), config.sampler.seed},
        model_(model),
        writing_(writing),
        completion_(model, prompts.tokens, config) {}

  void answer(const std::string& line) {
    const bool apart = !line.empty() && needs_end_of_line_;
    std::string text = apart ? "\n" : "";
    text += line;
    const auto tokens = writing_.tokens_of(text);
    completion_.append(tokens);
    const std::vector<std::string> prompts = {line};
    std::vector<Answer> answers = {Answer(writing_, options_.stops, text)};
    AnswerPrinter printer(prompts, answers, style_);
    try {
      read(static_cast<int64_t>(tokens.size()));
      make_answers(completion_, options_.length_or_default(), answers, printer);
    } catch (const Interrupted&) {
      if (stop_signal() != SIGINT) throw;
      forget_stop();
      answers[0].interrupt(/*seconds=*/0);  // while it was read
      printer.update();
    }
    needs_end_of_line_ = answers[0].ended() != Ended::kStop &&
                         !answers[0].text().ends_with('\n');
    note_window();
  }

 private:
  void read(int64_t tokens) {
    PrefillScreen screen(counted(tokens, "token"));
    completion_.read(screen.watch());
  }

  void note_window() {
    if (noted_ || !completion_.moved()) return;
    noted_ = true;
    Report(/*json=*/false).note(note_on_window(model_.positions().limit()));
  }

  const TextOptions& options_;
  AnswerStyle style_;
  const LanguageModel& model_;
  const TokenWriting& writing_;
  Completion completion_;
  bool needs_end_of_line_ = false;
  bool noted_ = false;
};

}  // namespace

void hold_session(const Prompts& prompts, const TextOptions& options,
                  const TokenWriting& writing, const CompletionConfig& config,
                  const LanguageModel& model) {
  require(prompts.count() == 1,
          "--interactive: one prompt begins the session, got ",
          prompts.count());
  require(std::count(options.files.begin(), options.files.end(), "-") == 0,
          "--interactive reads lines of standard input: the prompt must be in "
          "another file");
  Session session(prompts, options, writing, config, model);
  LineInput input;
  while (const auto line = input.next()) {
    try {
      session.answer(*line);
    } catch (const Error& error) {  // a line that is no text of the model
      if (!input.typed()) throw;
      Report(/*json=*/false).note(error.what());
    }
  }
  end_if_stopped();
}

}  // namespace reformer::cli
