#include "cli/bench/train.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/bench/measure_step.h"
#include "cli/bench/options.h"
#include "cli/options/config_options.h"
#include "cli/process/launched.h"
#include "cli/process/machine.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "reformer/base/errors.h"
#include "reformer/config/config_library.h"
#include "reformer/model/placement.h"
#include "reformer/model/prediction.h"
#include "reformer/train/rank_facts.h"

namespace reformer::cli {
namespace {

struct TrainBench {
  std::string config;  // empty: the defaults
  std::vector<std::string> assignments;
  std::vector<int64_t> lengths;  // empty: the config's
  int64_t batch = 0;             // 0: the config's
  int64_t repeats = 0;
  std::string device = "auto";
  int64_t threads = 0;
  bool json = false;
  bool profile = false;
};

Config config_of(const TrainBench& options, int64_t length) {
  Config config;
  if (!options.config.empty()) config = load_config(options.config);
  if (length > 0) config.train.length = length;
  if (options.batch > 0) {
    config.train.batch = options.batch;
    config.train.batch_tokens = 0;
  }
  set_values(config, options.assignments);
  check(config);
  return config;
}

std::string train_row(const Config& config, at::Device device,
                      const StepMeasurement& measured) {
  const auto compute = placement_on(device, config.train.precision).compute;
  nlohmann::ordered_json json;
  json["bench"] = "train";
  json["device"] = device.is_cpu() ? "cpu" : "cuda";
  json["dtype"] = name_of(compute);
  json["layers"] = config.model.layers;
  json["encoder_layers"] = config.model.encoder_layers;
  json["d_model"] = config.model.d_model;
  json["d_ff"] = config.model.d_ff;
  json["heads"] = config.model.heads;
  json["d_head"] = head_size(config.model);
  json["attention"] = config.model.attention.names();
  json["block"] = config.model.block.name();
  json["length"] = config.train.length;
  json["batch"] = batch_rows(config);
  json["rounds"] = config.lsh.rounds;
  json["local_window"] = config.lsh.local_window;
  json["optimizer"] = config.train.optimizer.name();
  json["clip"] = config.train.clip;
  json["offload"] = config.train.offload;
  json["parameters"] = measured.parameters;
  json["step_s"] = measured.step_s;
  json["tokens_per_s"] = measured.tokens_per_s;
  json["peak_bytes"] = measured.peak_bytes;
  json["captured"] = measured.captured;
  json["ranks"] = measured.ranks;
  json["rank_wait"] = measured.rank_wait;
  json["sent_bytes"] = measured.sent_bytes;
  json["optimizer_bytes"] = measured.optimizer_bytes;
  return json.dump() + "\n";
}

const std::vector<Column> kTrainColumns = {
    {8, "", "length"},    {7, "", "batch"},           {12, "", "parameters"},
    {10, "ms a", "step"}, {10, "tokens", "a second"}, {10, "peak", "GiB"}};

std::string train_head(const Config& config, at::Device device,
                       const World* world) {
  std::ostringstream text;
  text << "Training steps: ";
  if (config.model.encoder_layers > 0) {
    text << config.model.encoder_layers << "+";
  }
  text << config.model.layers << " layers " << config.model.d_model << "/"
       << config.model.d_ff << ", " << config.model.heads << " heads of "
       << head_size(config.model) << ", " << config.model.attention
       << " attention, " << config.model.block << " blocks\nrounds "
       << config.lsh.rounds << ", chunk " << config.lsh.chunk_length
       << ", local window " << config.lsh.local_window << ", "
       << config.train.optimizer << "\n"
       << describe_machine(device);
  if (world != nullptr) text << ", " << world->ranks().size << " ranks";
  text << "\n\n" << table_head(kTrainColumns);
  return text.str();
}

// What ranks must be asked alike, besides the settings of each length.
RankFacts facts_of(const TrainBench& options, at::Device device) {
  std::string lengths;
  for (const int64_t length : options.lengths) {
    lengths += (lengths.empty() ? "" : ",") + std::to_string(length);
  }
  RankFacts facts{{"--length", lengths},
                  {"--repeats", std::to_string(options.repeats)},
                  {"--profile", options.profile ? "given" : ""}};
  for (auto& fact : machine_facts(device)) facts.push_back(std::move(fact));
  return facts;
}

void bench_lengths(const TrainBench& options, at::Device device,
                   const std::vector<int64_t>& lengths, World* world) {
  if (world != nullptr) world->require_alike(facts_of(options, device));
  Report report(options.json);
  report.text(train_head(config_of(options, lengths.front()), device, world));
  for (const int64_t length : lengths) {
    const Config config = config_of(options, length);
    if (world != nullptr) world->require_alike(setting_facts(config));
    report.progress("length " + std::to_string(config.train.length));
    const auto measured =
        measure_step(config, device, options.repeats, options.profile, world);
    report.text(table_row(
        kTrainColumns,
        {std::to_string(config.train.length),
         std::to_string(batch_rows(config)),
         std::to_string(measured.parameters), milliseconds(measured.step_s),
         fixed(measured.tokens_per_s, 0),
         fixed(double(measured.peak_bytes) / (1 << 30), 2)}));
    report.text(measured.profile);
    report.json(train_row(config, device, measured));
  }
}

void bench_train(const TrainBench& options) {
  if (!launched_ranks().first()) be_silent();
  const auto device = use_machine(device_of_rank(options.device),
                                  threads_of_rank(options.threads));
  require(
      !options.profile || device.is_cuda(),
      "bench train --profile tells what a GPU does: it needs --device cuda");
  const auto lengths =
      options.lengths.empty() ? std::vector<int64_t>{0} : options.lengths;
  run_as_rank(config_of(options, lengths.front()), device, [&](World* world) {
    bench_lengths(options, device, lengths, world);
  });
}

}  // namespace

void add_bench_train(CLI::App& bench, Action& action) {
  auto& app = *bench.add_subcommand(
      "train", "whole training steps: time, tokens a second, memory");
  const auto options = std::make_shared<TrainBench>();
  app.add_option("--config", options->config,
                 "a config's name or file [3 layers 512/2048/8, LSH]")
      ->take_last()
      ->type_name("CONFIG");
  add_set_option(app, options->assignments);
  app.add_option("--length", options->lengths,
                 "positions of a sequence [the config's]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(1, kMaxLength))
      ->type_name("N,...");
  const auto number = [&app](const char* name, int64_t& value,
                             const char* help) {
    app.add_option(name, value, help)
        ->check(whole_number(1, kMaxLength))
        ->take_last()
        ->type_name("N");
  };
  number("--batch", options->batch, "sequences a step [the config's]");
  number("--repeats", options->repeats,
         "steps to time, of which the median counts [enough]");
  add_machine_options(app, options->device, options->threads);
  app.add_flag("--json", options->json, "one JSON object a line on stdout");
  app.add_flag("--profile", options->profile,
               "also where a step's time on the GPU goes, by kernel");
  app.callback(
      [options, &action] { action = [options] { bench_train(*options); }; });
}

}  // namespace reformer::cli
