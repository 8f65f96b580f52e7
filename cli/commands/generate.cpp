#include "cli/commands/generate.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/generate/complete_images.h"
#include "cli/generate/continue_texts.h"
#include "cli/generate/prompt.h"
#include "cli/generate/session.h"
#include "cli/options/config_options.h"
#include "cli/options/sampler_options.h"
#include "reformer/base/errors.h"
#include "reformer/generate/sampler.h"
#include "reformer/io/checkpoint.h"
#include "reformer/tasks/task_tokenizer.h"
#include "reformer/train/trainer.h"

namespace reformer::cli {
namespace {

struct GenerateOptions {
  std::string directory;
  TextOptions texts;
  SamplerConfig sampler;
  CompleteImagesOptions images;
  int64_t rounds = 0;
  std::string device = "auto";
  int64_t threads = 0;
};

void warn_of_chunk_windows(const Config& config) {
  const bool lsh = config.model.attention.contains(AttentionKind::kLsh);
  if (!lsh || config.lsh.window == Window::kTrailing) return;
  std::fputs(
      "note: trained with lsh.window chunk, under which later tokens move "
      "what earlier ones see; generating with trailing windows\n",
      stderr);
}

void run_generate(const GenerateOptions& options) {
  const auto device = use_machine(options.device, options.threads);
  const auto checkpoint = load_best_model(options.directory);
  const auto& config = checkpoint.config;
  const bool images = config.task.name == TaskKind::kImages;
  require(!images || !options.texts.given(),
          "a model of images completes images: give --images or "
          "--image-file, not options of texts");
  require(
      images || (options.images.images.empty() && options.images.files.empty()),
      "--images and --image-file are for models of images; this one of ",
      config.task.name, " continues a --prompt");
  require(config.task.name != TaskKind::kTranslation &&
              config.task.name != TaskKind::kTranslationToy,
          "generate: a model of text, images or numbers is required, this one "
          "of ",
          config.task.name, " translates: reformer translate DIR");
  const TokenWriting writing(config,
                             run_tokenizer(config, checkpoint.tokenizer));
  const auto prompts = prompts_of(options.texts, writing);
  LanguageModel model(config,
                      placement_for_use(device, config.train.precision));
  load_parameters(model, checkpoint.parameters);
  warn_of_chunk_windows(config);
  const CompletionConfig completion{options.sampler, options.rounds,
                                    writing.count()};
  if (images) {
    complete_images(options.images, completion, model);
  } else if (options.texts.interactive) {
    hold_session(prompts, options.texts, writing, completion, model);
  } else {
    continue_texts(prompts, options.texts, writing, completion, model);
  }
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand(
      "generate",
      "Continue prompts, or complete halves of images, with "
      "a trained model");
  const auto options = std::make_shared<GenerateOptions>();
  command.add_option("DIR", options->directory, "folder of the run")
      ->required()
      ->check(not_empty());
  options->texts.add_to(command);
  add_sampler_options(command, options->sampler);
  add_repetition_options(command, options->sampler);
  command
      .add_option("--rounds", options->rounds,
                  "hash rounds, free to differ from training's; 0: the same")
      ->check(whole_number(0, 1024))
      ->type_name("N")
      ->capture_default_str();
  options->images.add_to(command);
  add_machine_options(command, options->device, options->threads);
  command.callback(
      [options, &action] { action = [options] { run_generate(*options); }; });
}

}  // namespace reformer::cli
