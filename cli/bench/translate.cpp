#include "cli/bench/translate.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/bench/kernel_profile.h"
#include "cli/bench/options.h"
#include "cli/bench/timing.h"
#include "cli/options/config_options.h"
#include "cli/process/machine.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "cli/translate/translation_options.h"
#include "reformer/base/errors.h"
#include "reformer/base/philox.h"
#include "reformer/device/device.h"
#include "reformer/generate/translator.h"

namespace reformer::cli {
namespace {

constexpr int64_t kEndToken = 0;

struct TranslateBench {
  int64_t batch = 0;
  int64_t beam = 4;
  int64_t tokens = 25;
  int64_t repeats = 3;
  Config config;
  std::string device = "auto";
  int64_t threads = 0;
  bool json = false;
  bool profile = false;
};

std::vector<std::vector<int64_t>> random_sources(int64_t count, int64_t tokens,
                                                 int64_t vocabulary) {
  std::vector<std::vector<int64_t>> sources;
  for (int64_t row = 0; row < count; ++row) {
    sources.emplace_back();
    for (int64_t i = 0; i < tokens; ++i) {
      const auto bits = philox(
          {0, 0}, {static_cast<uint32_t>(row), static_cast<uint32_t>(i), 0, 0});
      sources.back().push_back(1 + static_cast<int64_t>(bits[0]) %
                                       (vocabulary - 1));
    }
  }
  return sources;
}

// Every output is as long as it may be: nothing ends by itself.
void forbid_ends(EncoderDecoder& model) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) {
    if (parameter.name == "head.bias") parameter.value[kEndToken] = -1e9;
  }
}

std::string translate_head(const TranslateBench& options, int64_t batch,
                           at::Device device) {
  const auto& model = options.config.model;
  std::ostringstream text;
  text << "Translating: " << model.encoder_layers << "+" << model.layers
       << " layers " << model.d_model << "/" << model.d_ff << ", "
       << model.heads << " heads, " << model.block << ", vocabulary "
       << model.vocabulary << ", random weights\nbeam " << options.beam
       << ", batch " << batch << ", " << options.tokens
       << " tokens of each sentence, its end included\n"
       << describe_machine(device) << "\n\n";
  return text.str();
}

std::string translate_row(const TranslateBench& options, int64_t batch,
                          const Placement& placement, double seconds) {
  const auto& model = options.config.model;
  nlohmann::ordered_json json;
  json["bench"] = "translate";
  json["device"] = placement.device.is_cpu() ? "cpu" : "cuda";
  json["dtype"] = name_of(placement.compute);
  json["batch"] = batch;
  json["beam"] = options.beam;
  json["tokens"] = options.tokens;
  json["encoder_layers"] = model.encoder_layers;
  json["layers"] = model.layers;
  json["d_model"] = model.d_model;
  json["d_ff"] = model.d_ff;
  json["heads"] = model.heads;
  json["vocabulary"] = model.vocabulary;
  json["block"] = model.block.name();
  json["seconds"] = seconds;
  json["tokens_per_s"] = double(batch * options.tokens) / seconds;
  return json.dump() + "\n";
}

void bench_translate(const TranslateBench& options) {
  const auto device = use_machine(options.device, options.threads);
  require(!options.profile || device.is_cuda(),
          "bench translate --profile tells what a GPU does: it needs --device "
          "cuda");
  const int64_t batch =
      options.batch > 0 ? options.batch : translation_batch(device);
  EncoderDecoder model(
      options.config,
      placement_for_use(device, options.config.train.precision));
  forbid_ends(model);
  TranslatorConfig config;
  config.beam = options.beam;
  config.end_token = kEndToken;
  config.batch = batch;
  config.more = 0;
  const Translator translator(model, config);
  const auto sources = random_sources(batch, options.tokens - 1,
                                      options.config.model.vocabulary);
  Report report(options.json);
  report.text(translate_head(options, batch, device));
  report.progress("translating");
  double best = 0;
  for (int64_t i = 0; i <= options.repeats; ++i) {
    const Stopwatch watch;
    translator.translate(sources);
    synchronize(device);
    const double seconds = watch.seconds();
    if (i > 0) best = i == 1 ? seconds : std::min(best, seconds);  // 0: warms
  }
  report.text(fixed(double(batch * options.tokens) / best, 0) +
              " target tokens/s, " + milliseconds(best) +
              " ms a batch, the best of " + std::to_string(options.repeats) +
              "\n");
  report.json(translate_row(options, batch, model.placement(), best));
  if (options.profile) {
    report.text(kernel_profile([&] { translator.translate(sources); }));
  }
}

void add_translate_options(CLI::App& app, Config& config) {
  const auto number = [&app](const char* name, int64_t& value,
                             const char* help) {
    app.add_option(name, value, help)
        ->check(whole_number(1, kMaxLength))
        ->take_last()
        ->type_name("N")
        ->capture_default_str();
  };
  number("--layers", config.model.layers, "blocks of the decoder");
  number("--encoder-layers", config.model.encoder_layers,
         "blocks of the encoder");
  number("--d-model", config.model.d_model, "width of the streams");
  number("--d-ff", config.model.d_ff, "width of the feed-forward");
  number("--heads", config.model.heads, "attention heads");
  number("--vocabulary", config.model.vocabulary, "tokens");
  app.add_option_function<std::string>(
         "--block",
         [&config](const std::string& name) { config.model.block = name; },
         "reversible, stored or residual")
      ->check(one_of({"reversible", "stored", "residual"}))
      ->take_last()
      ->type_name("NAME")
      ->default_str("reversible");
}

Config base_model() {
  Config config;
  config.task.name = TaskKind::kNone;
  config.model.layers = 6;
  config.model.encoder_layers = 6;
  config.model.d_model = 512;
  config.model.d_ff = 2048;
  config.model.heads = 8;
  config.model.vocabulary = 32000;
  config.model.attention = AttentionKind::kFull;
  config.model.positions = PositionKind::kSinusoid;
  config.model.activation = ActivationKind::kRelu;
  return config;
}

}  // namespace

void add_bench_translate(CLI::App& bench, Action& action) {
  auto& app = *bench.add_subcommand(
      "translate", "target tokens a second of an encoder-decoder");
  const auto options = std::make_shared<TranslateBench>();
  options->config = base_model();
  const auto add = [&app](const char* name, int64_t& value, int64_t least,
                          int64_t most, const char* help) {
    app.add_option(name, value, help)
        ->check(whole_number(least, most))
        ->take_last()
        ->type_name("N")
        ->capture_default_str();
  };
  add("--batch", options->batch, 0, 8191,
      "sentences at a time; 0: 32 on a CPU, 128 on a GPU");
  add("--beam", options->beam, 1, 255, "hypotheses of a sentence");
  add("--tokens", options->tokens, 2, kMaxLength,
      "tokens of every source and every translation, their ends included");
  add("--repeats", options->repeats, 1, kMaxLength,
      "times to measure, of which the best counts");
  add_translate_options(app, options->config);
  add_machine_options(app, options->device, options->threads);
  app.add_flag("--json", options->json, "one JSON object a line on stdout");
  app.add_flag("--profile", options->profile,
               "also where the GPU's time of a batch goes, by kernel");
  app.callback([options, &action] {
    action = [options] { bench_translate(*options); };
  });
}

}  // namespace reformer::cli
