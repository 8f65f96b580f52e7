#include "cli/bench/generate.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randint.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/bench/kernel_profile.h"
#include "cli/bench/options.h"
#include "cli/bench/timing.h"
#include "cli/options/config_options.h"
#include "cli/process/machine.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "reformer/base/errors.h"
#include "reformer/config/config_library.h"
#include "reformer/device/device.h"
#include "reformer/generate/decoder.h"
#include "reformer/generate/sampler.h"

namespace reformer::cli {
namespace {

struct GenerateBench {
  std::vector<int64_t> positions = {1000, 60000};
  int64_t batch = 1;
  int64_t tokens = 64;
  std::string config_name;  // empty: of the options below
  std::vector<std::string> assignments;
  Config config;
  std::string device = "auto";
  int64_t threads = 0;
  bool json = false;
  bool profile = false;
};

// Texts that have been read up to a position, and the times of their next
// tokens.
struct Reader {
  int64_t position;
  double read_s;
  std::unique_ptr<Decoder> decoder;
  at::Tensor tokens;  // [batch]: the last drawn
  std::vector<double> token_s;
};

at::Tensor random_tokens(const Config& config, at::IntArrayRef sizes,
                         uint64_t seed) {
  const auto random = at::detail::createCPUGenerator(seed);
  return at::randint(config.model.vocabulary, sizes, random,
                     at::TensorOptions().dtype(at::kLong));
}

Reader read_up_to(int64_t position, int64_t batch, const LanguageModel& model,
                  Sampler& sampler) {
  Reader reader{position, 0, std::make_unique<Decoder>(model, batch), {}, {}};
  const auto prompt = random_tokens(model.config(), {batch, position - 1}, 0);
  const Stopwatch watch;
  const auto logits = reader.decoder->prefill(
      prompt, std::vector<int64_t>(batch, position - 1));
  synchronize(model.placement().device);
  reader.read_s = watch.seconds();
  reader.tokens = sampler.draw(logits);
  return reader;
}

// A token as `reformer generate` makes it: the step, and drawing from it.
void take_token(Reader& reader, Sampler& sampler) {
  reader.tokens = sampler.draw(reader.decoder->step(reader.tokens));
}

// In turns, so that whatever else the machine does slows all alike.
void time_tokens(const GenerateBench& options, std::vector<Reader>& readers,
                 Sampler& sampler) {
  for (int64_t t = 0; t <= options.tokens; ++t) {
    for (auto& reader : readers) {
      const Stopwatch watch;
      take_token(reader, sampler);
      if (t > 0) reader.token_s.push_back(watch.seconds());  // 0: warms up
    }
  }
}

std::string generate_row(const GenerateBench& options,
                         const Placement& placement, const Reader& reader) {
  const auto& config = options.config;
  const double token_s = median(reader.token_s);
  const double sum =
      std::accumulate(reader.token_s.begin(), reader.token_s.end(), 0.0);
  nlohmann::ordered_json json;
  json["bench"] = "generate";
  json["device"] = placement.device.is_cpu() ? "cpu" : "cuda";
  json["dtype"] = name_of(placement.compute);
  json["batch"] = options.batch;
  json["layers"] = config.model.layers;
  json["d_model"] = config.model.d_model;
  json["d_ff"] = config.model.d_ff;
  json["heads"] = config.model.heads;
  json["attention"] = config.model.attention.names();
  json["rounds"] = config.lsh.rounds;
  json["chunk_length"] = config.lsh.chunk_length;
  json["local_window"] = config.lsh.local_window;
  json["train_length"] = config.train.length;
  json["position"] = reader.position;
  json["token_s"] = token_s;
  json["mean_token_s"] = sum / double(reader.token_s.size());
  json["tokens_per_s"] = double(options.batch) / token_s;
  json["read_s"] = reader.read_s;
  json["captured"] = reader.decoder->captured();
  return json.dump() + "\n";
}

const std::vector<Column> kGenerateColumns = {{9, "", "position"},
                                              {10, "ms a", "token"},
                                              {10, "tokens", "a second"},
                                              {10, "times", "the first"},
                                              {12, "read up to", "there, s"}};

std::string generate_head(const GenerateBench& options, at::Device device) {
  const auto& c = options.config;
  std::ostringstream text;
  text << "Generating: " << c.model.layers << " layers " << c.model.d_model
       << "/" << c.model.d_ff << ", " << c.model.heads << " heads, "
       << c.model.attention << " attention, random weights\nrounds "
       << c.lsh.rounds << ", chunk " << c.lsh.chunk_length << ", local window "
       << c.lsh.local_window << ", made for texts of " << c.train.length << "\n"
       << describe_machine(device) << "\n\n"
       << table_head(kGenerateColumns);
  return text.str();
}

void bench_generate(GenerateBench options) {
  if (!options.config_name.empty()) {
    options.config = load_config(options.config_name);
  }
  set_values(options.config, options.assignments);
  check(options.config);
  const auto device = use_machine(options.device, options.threads);
  require(!options.profile || device.is_cuda(),
          "bench generate --profile tells what a GPU does: it needs --device "
          "cuda");
  const LanguageModel model(
      options.config,
      placement_for_use(device, options.config.train.precision));
  Report report(options.json);
  report.text(generate_head(options, device));
  Sampler sampler({});
  std::vector<Reader> readers;
  for (const int64_t position : options.positions) {
    report.progress("reading " + std::to_string(position) + " positions");
    readers.push_back(read_up_to(position, options.batch, model, sampler));
  }
  report.progress("timing tokens");
  time_tokens(options, readers, sampler);
  const double first_s = median(readers.front().token_s);
  for (const auto& reader : readers) {
    const double token_s = median(reader.token_s);
    report.text(
        table_row(kGenerateColumns,
                  {std::to_string(reader.position), milliseconds(token_s),
                   fixed(double(options.batch) / token_s, 0),
                   fixed(token_s / first_s, 2, "x"), fixed(reader.read_s, 2)}));
    report.json(generate_row(options, model.placement(), reader));
  }
  if (options.profile) {
    report.text(kernel_profile([&] { take_token(readers.back(), sampler); }));
  }
}

// A config that is named has all of these.
void add_generate_options(CLI::App& app, Config& config, CLI::Option* named) {
  const auto number = [&](const char* name, int64_t& value, int64_t least,
                          const char* help) {
    app.add_option(name, value, help)
        ->excludes(named)
        ->check(whole_number(least, kMaxLength))
        ->take_last()
        ->type_name("N")
        ->capture_default_str();
  };
  number("--layers", config.model.layers, 1, "blocks");
  number("--d-model", config.model.d_model, 1, "width of the streams");
  number("--d-ff", config.model.d_ff, 1, "width of the feed-forward");
  number("--heads", config.model.heads, 1, "attention heads");
  number("--rounds", config.lsh.rounds, 1, "hash rounds");
  number("--chunk", config.lsh.chunk_length, 1, "the windows' length");
  number("--local-window", config.lsh.local_window, 0,
         "last positions joined as one more round; 0: none");
  number("--length", config.train.length, 1,
         "training length, by which buckets are counted");
  app.add_option_function<std::string>(
         "--attention",
         [&config](const std::string& names) {
           config.model.attention = names;
         },
         "full, full_shared_qk, local or lsh, or a list of them")
      ->excludes(named)
      ->take_last()
      ->type_name("NAME,...")
      ->default_str(config.model.attention.names());
}

}  // namespace

void add_bench_generate(CLI::App& bench, Action& action) {
  auto& app = *bench.add_subcommand(
      "generate", "the time of a token after texts of different lengths");
  const auto options = std::make_shared<GenerateBench>();
  options->config.model.positions = PositionKind::kSinusoid;  // of any length
  options->config.train.length = 65536;
  app.add_option("--position", options->positions, "where to measure")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(1, kMaxLength))
      ->type_name("N,...")
      ->default_str("1000,60000");
  app.add_option("--tokens", options->tokens,
                 "tokens to time there, of which the median counts")
      ->check(whole_number(1, kMaxLength))
      ->take_last()
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--batch", options->batch, "texts at once")
      ->check(whole_number(1, kMaxLength))
      ->take_last()
      ->type_name("N")
      ->capture_default_str();
  auto* const config =
      app.add_option("--config", options->config_name,
                     "a config's name or file, in place of the options of the "
                     "model below")
          ->take_last()
          ->type_name("CONFIG");
  add_set_option(app, options->assignments);
  add_generate_options(app, options->config, config);
  add_machine_options(app, options->device, options->threads);
  app.add_flag("--json", options->json, "one JSON object a line on stdout");
  app.add_flag("--profile", options->profile,
               "also where the GPU's time of a token goes, by kernel");
  app.callback(
      [options, &action] { action = [options] { bench_generate(*options); }; });
}

}  // namespace reformer::cli
