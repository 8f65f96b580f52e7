#include "cli/commands/eval.h"

#include <memory>

#include "cli/draw/gnuplot.h"
#include "cli/eval/eval_options.h"
#include "cli/eval/evaluation.h"
#include "cli/options/config_options.h"
#include "cli/process/launched.h"
#include "cli/process/stop_signal.h"
#include "cli/screen/output.h"
#include "reformer/base/errors.h"
#include "reformer/io/checkpoint.h"
#include "reformer/kernels/top_tokens.h"

namespace reformer::cli {
namespace {

// What ranks need in order to meet, before any of them loads the run.
Config launched_config(const EvalOptions& options) {
  if (!launched_ranks().launched()) return {};
  Config config = load_best_config(options.directory);
  set_values(config, options.assignments);
  check(config);
  return config;
}

void require_their_attention(const EvalOptions& options) {
  const auto kinds = load_best_config(options.directory).model.attention;
  require(kinds.contains(AttentionKind::kLshHuggingface),
          "--our-attention: a model with lsh_huggingface is required, "
          "model.attention is ",
          kinds);
}

// Beside what it was trained with: what does the change cost?
void evaluate_both(const EvalOptions& options, at::Device device,
                   World* world) {
  if (options.our_attention) require_their_attention(options);
  auto trained = options;
  trained.our_attention = false;
  if (options.our_attention) evaluate_run(trained, device, world);
  evaluate_run(options, device, world);
}

void run_eval(const EvalOptions& options) {
  require(options.png.empty() || options.by_position || !options.recall.empty(),
          "--png draws the loss against the position or the distance: it needs "
          "--by-position or --recall");
  if (!launched_ranks().first()) be_silent();
  stop_requested();  // from here on a wish, which progress heeds
  const auto device = use_machine(device_of_rank(options.device),
                                  threads_of_rank(options.threads));
  run_as_rank(launched_config(options), device, [&](World* world) {
    // When all have met: who gives up earlier leaves the others waiting.
    if (!options.png.empty() && !is_silent()) check_plot_path(options.png);
    evaluate_both(options, device, world);
  });
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand("eval", "Evaluate a trained model");
  const auto options = std::make_shared<EvalOptions>();
  command.add_option("DIR", options->directory, "folder of the run")
      ->required()
      ->check(not_empty());
  command.add_option("--data", options->data, "other data: sets task.data")
      ->check(not_empty())
      ->type_name("PATH");
  command.add_option("--split", options->split, "validation or test")
      ->check(one_of({"validation", "test"}))
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--rounds", options->rounds,
                  "hash rounds, free to differ from training's; 0: the same")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(0, 1024))
      ->type_name("N,...");
  command
      .add_option("--batches", options->batches,
                  "batches of the split to take; 0: all")
      ->check(whole_number(0, kMaxLength))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option(
          "--length", options->lengths,
          "positions of a sequence, at most the model's; 0: training's; "
          "each with all of --rounds")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(0, kMaxLength))
      ->type_name("N,...");
  auto* by_position =
      command.add_flag("--by-position", options->by_position,
                       "the loss by position in the sequence: does the model "
                       "use what lies far back?");
  command
      .add_option("--recall", options->recall,
                  "the loss on pieces of text that come a second time, so many "
                  "positions after the first: does it find them?")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(1, kMaxLength))
      ->excludes(by_position)
      ->type_name("N,...");
  command.add_option("--png,--out", options->png, "draw that: a .png or .svg")
      ->check(not_empty())
      ->type_name("FILE");
  command
      .add_option("--beam", options->beam,
                  "of a translation model: hypotheses that translations are "
                  "searched with, for BLEU, which is of all --batches; 0: none")
      ->check(whole_number(0, kernels::kMaxTopTokens - 1))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--length-penalty", options->length_penalty,
                  "of these: as translate's")
      ->check(number(-100, 100))
      ->type_name("A")
      ->capture_default_str();
  command.add_flag("--our-attention", options->our_attention,
                   "of a model imported from Hugging Face: evaluate a second "
                   "time, with lsh in place of lsh_huggingface");
  add_set_option(command, options->assignments);
  add_machine_options(command, options->device, options->threads);
  command.add_flag("--json", options->json, "one JSON object a line on stdout");
  command.callback(
      [options, &action] { action = [options] { run_eval(*options); }; });
}

}  // namespace reformer::cli
