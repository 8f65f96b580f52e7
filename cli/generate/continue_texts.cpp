#include "cli/generate/continue_texts.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/bench/timing.h"
#include "cli/generate/prefill_screen.h"
#include "cli/generate/prompt.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/device/device.h"

namespace reformer::cli {
namespace {

int64_t total_tokens(const std::vector<Answer>& answers) {
  int64_t sum = 0;
  for (const auto& answer : answers) sum += answer.tokens();
  return sum;
}

void say_speed(const Prompts& prompts, const std::vector<Answer>& answers,
               double reading_s, bool stopped) {
  const int64_t made = total_tokens(answers);
  double making_s = 0;
  for (const auto& answer : answers) {
    making_s = std::max(making_s, answer.seconds());
  }
  const std::string texts =
      prompts.count() == 1
          ? "prompt of "
          : counted(prompts.count(), "text") + "; prompts of up to ";
  std::fprintf(
      stderr, "%s%lld tokens in %.2f s, %.1f tokens/s; %s%lld read in %.2f s\n",
      stopped ? "stopped: " : "", static_cast<long long>(made), making_s,
      making_s > 0 ? double(made) / making_s : 0, texts.c_str(),
      static_cast<long long>(prompts.longest()), reading_s);
}

// Before anything is printed: in the middle of a text it would be misread.
void warn_of_window(const Prompts& prompts, int64_t length,
                    const LanguageModel& model) {
  const int64_t positions = model.positions().limit();
  if (prompts.longest() + length <= positions) return;
  Report(/*json=*/false).note(note_on_window(positions));
}

void read_prompts(Completion& completion, const Prompts& prompts,
                  at::Device device) {
  const std::string tokens = counted(prompts.longest(), "token");
  PrefillScreen screen(prompts.count() == 1 ? "a prompt of " + tokens
                                            : "prompts of up to " + tokens);
  completion.read(screen.watch());
  synchronize(device);
}

}  // namespace

int64_t Prompts::longest() const {
  size_t longest = 0;
  for (const auto& row : tokens) longest = std::max(longest, row.size());
  return static_cast<int64_t>(longest);
}

std::string note_on_window(int64_t positions) {
  return "this model has " + std::to_string(positions) +
         " positions: whenever a text has no position left, its last " +
         counted(positions / 2, "token") +
         " are read anew, and it goes on from these alone";
}

Prompts prompts_of(const TextOptions& options, const TokenWriting& writing) {
  require(std::count(options.files.begin(), options.files.end(), "-") <= 1,
          "--prompt-file: standard input can be read only once");
  Prompts prompts;
  prompts.texts = options.prompts;
  for (const auto& file : options.files) {
    prompts.texts.push_back(contents_of(file));
  }
  if (prompts.texts.empty()) prompts.texts.emplace_back();
  for (const auto& text : prompts.texts) {
    prompts.tokens.push_back(writing.tokens_of(text));
  }
  return prompts;
}

void make_answers(Completion& completion, int64_t length,
                  std::vector<Answer>& answers, AnswerPrinter& printer) {
  const Stopwatch watch;
  const auto has_ended = [](const Answer& answer) {
    return answer.ended() != Ended::kNot;
  };
  try {
    while (!std::all_of(answers.begin(), answers.end(), has_ended)) {
      const auto tokens = completion.next(silent_watch());
      const auto* token = tokens.const_data_ptr<int64_t>();
      for (auto& answer : answers) {
        answer.add(*token++, length, watch.seconds());
      }
      printer.update();
    }
  } catch (const Interrupted&) {
    for (auto& answer : answers) answer.interrupt(watch.seconds());
    printer.update();
    throw;
  }
}

void continue_texts(const Prompts& prompts, const TextOptions& options,
                    const TokenWriting& writing, const CompletionConfig& config,
                    const LanguageModel& model) {
  const int64_t length = options.length_or_default();
  std::vector<Answer> answers;
  for (const auto& text : prompts.texts) {
    answers.emplace_back(writing, options.stops, text);
  }
  AnswerPrinter printer(
      prompts.texts, answers,
      {options.json, options.shows_prompt(), config.sampler.seed});
  Completion completion(model, prompts.tokens, config);
  warn_of_window(prompts, length, model);
  const Stopwatch reading;
  double reading_s = 0;
  try {
    read_prompts(completion, prompts, model.placement().device);
    reading_s = reading.seconds();
    make_answers(completion, length, answers, printer);
  } catch (const Interrupted&) {
    if (reading_s > 0) {
      say_speed(prompts, answers, reading_s, /*stopped=*/true);
    } else {
      Report(/*json=*/false).note("stopped while reading the prompt");
    }
    throw;
  }
  say_speed(prompts, answers, reading_s, /*stopped=*/false);
}

}  // namespace reformer::cli
