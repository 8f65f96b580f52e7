#include "cli/commands/translate.h"

#include <unistd.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cli/options/config_options.h"
#include "cli/process/line_input.h"
#include "cli/process/stop_signal.h"
#include "cli/screen/output.h"
#include "cli/screen/progress.h"
#include "cli/translate/line_translator.h"
#include "cli/translate/translation_options.h"
#include "cli/translate/translation_printer.h"
#include "reformer/base/errors.h"
#include "reformer/io/checkpoint.h"
#include "reformer/tasks/task_tokenizer.h"
#include "reformer/train/evaluation.h"

namespace reformer::cli {
namespace {

// Batches whose lines are put in order of length together.
constexpr int64_t kBatchesTogether = 16;

struct TranslateOptions {
  std::string directory;
  std::string file;  // empty, or -: standard input
  TranslationOptions translation;
  bool json = false;
  std::string device = "auto";
  int64_t threads = 0;
};

class Translate {
 public:
  Translate(const TranslateOptions& options, const LineTranslator& translator,
            int64_t batch)
      : options_(options),
        translator_(translator),
        together_(static_cast<std::size_t>(batch * kBatchesTogether)),
        printer_({options.json, options.translation.n_best > 1}) {}

  // All lines are there: how many are left is known.
  void translate_file() {
    LineInput input(options_.file);
    std::vector<std::string> lines;
    while (auto line = input.next()) lines.push_back(std::move(*line));
    end_if_stopped();
    for (std::size_t at = 0; at < lines.size(); at += together_) {
      const auto end = std::min(at + together_, lines.size());
      translate({lines.begin() + static_cast<long>(at),
                 lines.begin() + static_cast<long>(end)},
                std::ssize(lines));
    }
  }

  // As many as there are, without waiting for more.
  void translate_input() {
    LineInput input;
    while (true) {
      const auto lines = input.next_lines(together_);
      if (lines.empty()) break;
      translate(lines, /*all=*/0);
    }
    end_if_stopped();
  }

 private:
  // all: lines that there are; 0: nobody knows.
  void translate(const std::vector<std::string>& given, int64_t all) {
    std::vector<std::string> lines = given;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].ends_with('\r')) lines[i].pop_back();
      note_length(first_ + static_cast<int64_t>(i), lines[i]);
    }
    int64_t done = 0;
    translator_.translate(
        lines,
        [&](std::size_t i, const std::vector<Translation>& translations) {
          printer_.add(first_ + static_cast<int64_t>(i), lines[i],
                       translations);
          ++done;
          if (all > 0 && shows_progress()) progress_(first_ + done, all);
        },
        &stop_requested(), first_);
    first_ += std::ssize(lines);
  }

  void note_length(int64_t line, const std::string& text) {
    const int64_t cut = translator_.tokens_too_many(text);
    if (cut == 0) return;
    report_.note("line " + std::to_string(line + 1) + ": the last " +
                 std::to_string(cut) +
                 " tokens are not read, the model's positions end before them");
  }

  // Translations and progress would stand in each other's lines.
  static bool shows_progress() { return isatty(STDOUT_FILENO) != 1; }

  const TranslateOptions& options_;
  const LineTranslator& translator_;
  std::size_t together_;
  TranslationPrinter printer_;
  Report report_{/*json=*/false};
  TimedProgress progress_{report_, "translating lines"};
  int64_t first_ = 0;  // of the lines that are translated next
};

void run_translate(const TranslateOptions& options) {
  const bool from_file = !options.file.empty() && options.file != "-";
  if (from_file) LineInput(options.file);  // before anything is loaded
  const auto device = use_machine(options.device, options.threads);
  const auto checkpoint = load_best_model(options.directory);
  const auto& config = checkpoint.config;
  require(config.model.encoder_layers > 0, options.directory,
          ": is a language model, which translates nothing; see reformer "
          "generate");
  const auto tokenizer = run_tokenizer(config, checkpoint.tokenizer);
  require(tokenizer != nullptr, options.directory,
          ": has no tokenizer, and so no lines of text to translate");
  stop_requested();  // from here on a wish
  EncoderDecoder model(config,
                       placement_for_use(device, config.train.precision));
  load_parameters(model, checkpoint.parameters);
  const auto settings = options.translation.config(device);
  const LineTranslator translator(model, tokenizer, settings);
  Translate translate(options, translator, settings.batch);
  from_file ? translate.translate_file() : translate.translate_input();
}

}  // namespace

void add_translate(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand(
      "translate", "Translate lines of text with a trained model");
  const auto options = std::make_shared<TranslateOptions>();
  command
      .add_option("DIR", options->directory,
                  "folder of the run, or of what average or export made of it")
      ->required()
      ->check(not_empty());
  command.add_option("FILE", options->file,
                     "lines to translate; none, or -: standard input");
  options->translation.add_to(command);
  command.add_flag("--json", options->json,
                   "an object a line: line, source, translations (text, score, "
                   "log_probability, tokens)");
  add_machine_options(command, options->device, options->threads);
  command.callback(
      [options, &action] { action = [options] { run_translate(*options); }; });
}

}  // namespace reformer::cli
