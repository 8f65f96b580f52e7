#include "cli/generate.h"

#include <ATen/ops/tensor.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/complete_images.h"
#include "cli/config_options.h"
#include "cli/output.h"
#include "cli/prompt.h"
#include "cli/stop_signal.h"
#include "cli/timing.h"
#include "reformer/core/errors.h"
#include "reformer/generate/decoder.h"
#include "reformer/generate/sampler.h"
#include "reformer/ops/device.h"
#include "reformer/train/checkpoint.h"
#include "reformer/train/trainer.h"

namespace reformer::cli {
namespace {

constexpr int64_t kDefaultLength = 256;

struct GenerateOptions {
  std::string directory;
  std::string prompt;
  std::string prompt_file;
  int64_t length = 0;  // 0: kDefaultLength, or what fits
  SamplerConfig sampler;
  CompleteImagesOptions images;
  int64_t rounds = 0;
  std::string device = "auto";
  int64_t threads = 0;
};

// The last symbol is never read: a position for each of the others, and one
// for the start symbol.
int64_t checked_length(const GenerateOptions& options,
                       const LanguageModel& model, int64_t prompt) {
  const int64_t limit = model.positions().limit();
  const int64_t wanted = options.length > 0 ? options.length : 1;
  require(prompt <= limit - wanted, "this model has ", limit,
          " positions: a prompt of ", prompt, " symbols leaves ",
          std::max<int64_t>(0, limit - prompt), " to generate, not ", wanted,
          "; give a shorter prompt or a smaller --length");
  return options.length > 0 ? options.length
                            : std::min(kDefaultLength, limit - prompt);
}

void warn_of_chunk_windows(const Config& config) {
  const auto kinds = layer_attentions(config.model);
  const bool lsh = std::find(kinds.begin(), kinds.end(), "lsh") != kinds.end();
  if (!lsh || config.lsh.window == Window::kTrailing) return;
  std::fputs(
      "note: trained with lsh.window chunk, under which later symbols move "
      "what earlier ones see; generating with trailing windows\n",
      stderr);
}

void report_speed(int64_t prompt, double prompt_s, int64_t made, double made_s,
                  bool stopped) {
  if (isatty(STDOUT_FILENO) == 1) print("\n");
  std::fprintf(stderr,
               "%s%lld tokens in %.2f s, %.1f tokens/s; prompt of %lld read in "
               "%.2f s\n",
               stopped ? "stopped: " : "", static_cast<long long>(made), made_s,
               made_s > 0 ? double(made) / made_s : 0,
               static_cast<long long>(prompt), prompt_s);
}

void write_continuation(const GenerateOptions& options,
                        const LanguageModel& model,
                        const std::vector<int64_t>& prompt,
                        const SymbolWriting& writing) {
  const auto& stop = stop_requested();
  const auto prompt_size = static_cast<int64_t>(prompt.size());
  const int64_t length = checked_length(options, model, prompt_size);
  Sampler sampler(options.sampler);
  Decoder decoder(model, /*batch=*/1, options.rounds);
  const Stopwatch reading;
  auto logits = decoder.read(
      at::tensor(prompt, at::kLong).view({1, prompt_size}), {prompt_size});
  synchronize(model.placement().device);
  const double prompt_s = reading.seconds();
  const Stopwatch making;
  int64_t made = 0;
  while (!stop) {
    const auto symbol = sampler.draw(logits.narrow(1, 0, writing.count()));
    print(writing.written(symbol.item<int64_t>()));
    if (++made == length) break;
    logits = decoder.step(symbol);
  }
  report_speed(prompt_size, prompt_s, made, making.seconds(), stop);
}

void write_images(const GenerateOptions& options, const LanguageModel& model,
                  const SymbolWriting& writing) {
  require(options.prompt.empty() && options.prompt_file.empty() &&
              options.length == 0,
          "a model of images completes pictures: give --images or "
          "--image-file, not --prompt, --prompt-file or --length");
  complete_images(options.images,
                  {options.sampler, options.rounds, writing.count()}, model);
}

void run_generate(const GenerateOptions& options) {
  const auto device = use_machine(options.device, options.threads);
  const auto checkpoint = load_best_checkpoint(options.directory);
  const SymbolWriting writing(checkpoint.config);
  const bool images = checkpoint.config.task.name == "images";
  const auto prompt = writing.symbols_of(
      options.prompt_file.empty() ? options.prompt
                                  : contents_of(options.prompt_file));
  LanguageModel model(
      checkpoint.config,
      placement_for_use(device, checkpoint.config.train.precision));
  load_parameters(model, checkpoint.parameters);
  warn_of_chunk_windows(checkpoint.config);
  if (images) {
    write_images(options, model, writing);
    return;
  }
  require(options.images.images.empty() && options.images.files.empty(),
          "--images and --image-file are for models of images; this one of ",
          checkpoint.config.task.name, " continues a --prompt");
  write_continuation(options, model, prompt, writing);
}

void add_sampler_options(CLI::App& command, SamplerConfig& sampler) {
  command
      .add_option("--temperature", sampler.temperature,
                  "divides the logits; 0: always the most probable symbol")
      ->check(number(0, 1e9))
      ->type_name("T")
      ->capture_default_str();
  command
      .add_option("--top-k", sampler.top_k,
                  "only the K most probable symbols; 0: all")
      ->check(whole_number(0, kMaxLength))
      ->type_name("K")
      ->capture_default_str();
  command
      .add_option("--top-p", sampler.top_p,
                  "of those, the fewest whose probabilities reach P")
      ->check(number(0, 1))
      ->type_name("P")
      ->capture_default_str();
  command.add_option("--seed", sampler.seed, "the same seed, the same text")
      ->check(whole_number(0, std::numeric_limits<int64_t>::max()))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  auto& command =
      *app.add_subcommand("generate",
                          "Continue a prompt, or complete half a picture, with "
                          "a trained model");
  const auto options = std::make_shared<GenerateOptions>();
  command.add_option("DIR", options->directory, "folder of the run")
      ->required();
  auto* prompt = command
                     .add_option("--prompt", options->prompt,
                                 "what to continue; of duplication: numbers")
                     ->type_name("TEXT");
  command
      .add_option("--prompt-file", options->prompt_file,
                  "a file that holds it; -: standard input")
      ->type_name("FILE")
      ->excludes(prompt);
  command
      .add_option("--length", options->length,
                  "symbols to generate [" + std::to_string(kDefaultLength) +
                      ", or as many as there are positions]")
      ->check(whole_number(1, kMaxLength))
      ->type_name("N");
  add_sampler_options(command, options->sampler);
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
