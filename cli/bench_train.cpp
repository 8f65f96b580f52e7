#include "cli/bench_train.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/config_options.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/timing.h"
#include "reformer/core/config_json.h"
#include "reformer/core/config_library.h"
#include "reformer/core/errors.h"
#include "reformer/ops/memory_meter.h"
#include "reformer/train/learner.h"

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
};

struct StepMeasurement {
  double step_s = 0;
  double tokens_per_s = 0;
  int64_t peak_bytes = 0;
  int64_t parameters = 0;
};

Config config_of(const TrainBench& options, int64_t length) {
  Config config;
  if (!options.config.empty()) config = load_config(options.config);
  if (length > 0) config.train.length = length;
  if (options.batch > 0) config.train.batch = options.batch;
  for (const auto& assignment : options.assignments) {
    set_config_value(config, assignment);
  }
  check(config);
  return config;
}

// Symbols of no meaning: what a step costs does not depend on them.
Batch random_batch(const Config& config, uint64_t seed) {
  const auto random = at::detail::createCPUGenerator(seed);
  const int64_t batch = config.train.batch;
  const int64_t length = config.train.length;
  return {at::randint(config.model.vocabulary, {batch, length}, random,
                      at::TensorOptions().dtype(at::kLong)),
          at::ones({batch, length}, at::kBool)};
}

// Everything that a step of `reformer train` does: forward, backward, clipping,
// optimizer. The first warms up, and makes the optimizer's state.
StepMeasurement measure(const Config& config, int64_t repeats) {
  const MemoryMeter meter;
  Learner learner(config);
  int64_t step = 0;
  const auto take_step = [&] {
    ++step;
    std::vector<Batch> batches;
    for (int64_t i = 0; i < config.train.accumulate; ++i) {
      batches.push_back(random_batch(
          config, static_cast<uint64_t>(step * config.train.accumulate + i)));
    }
    const auto gradients = learner.gradients(batches, step);
    require(gradients.finite(), "bench train: the loss is not finite");
    learner.apply(step);
  };
  take_step();
  StepMeasurement measured;
  measured.step_s = median_seconds(repeats, take_step);
  measured.tokens_per_s = double(config.train.batch * config.train.length *
                                 config.train.accumulate) /
                          measured.step_s;
  measured.peak_bytes = meter.peak_bytes();
  for (const auto& parameter : learner.model().parameters()) {
    measured.parameters += parameter.value.numel();
  }
  return measured;
}

std::string json_row(const Config& config, const StepMeasurement& measured) {
  nlohmann::ordered_json json;
  json["bench"] = "train";
  json["device"] = "cpu";
  json["dtype"] = "float32";
  json["layers"] = config.model.layers;
  json["length"] = config.train.length;
  json["batch"] = config.train.batch;
  json["rounds"] = config.lsh.rounds;
  json["step_s"] = measured.step_s;
  json["tokens_per_s"] = measured.tokens_per_s;
  json["peak_bytes"] = measured.peak_bytes;
  return json.dump() + "\n";
}

const std::vector<Column> kColumns = {
    {8, "", "length"},      {7, "", "batch"},    {12, "", "parameters"},
    {10, "ms a", "step"},   {10, "tokens", "a second"},
    {10, "peak", "GiB"}};

std::string head(const Config& config) {
  std::ostringstream text;
  text << "Training steps: " << config.model.layers << " layers "
       << config.model.d_model << "/" << config.model.d_ff << ", "
       << config.model.heads << " heads of " << head_size(config.model) << ", "
       << config.model.attention << " attention, " << config.model.block
       << " blocks\nrounds " << config.lsh.rounds << ", chunk "
       << config.lsh.chunk_length << ", local window "
       << config.lsh.local_window << ", " << config.train.optimizer << "\n"
       << describe_machine() << "\n\n"
       << table_head(kColumns);
  return text.str();
}

void bench_train(const TrainBench& options) {
  use_machine(options.device, options.threads);
  const auto lengths =
      options.lengths.empty() ? std::vector<int64_t>{0} : options.lengths;
  Report report(options.json);
  report.text(head(config_of(options, lengths.front())));
  for (const int64_t length : lengths) {
    const Config config = config_of(options, length);
    report.progress("length " + std::to_string(config.train.length));
    const auto measured = measure(config, options.repeats);
    report.text(table_row(
        kColumns,
        {std::to_string(config.train.length),
         std::to_string(config.train.batch),
         std::to_string(measured.parameters), milliseconds(measured.step_s),
         fixed(measured.tokens_per_s, 0),
         fixed(double(measured.peak_bytes) / (1 << 30), 2)}));
    report.json(json_row(config, measured));
  }
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
  app.add_option("--set", options->assignments, "a setting of its own")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
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
  app.callback(
      [options, &action] { action = [options] { bench_train(*options); }; });
}

}  // namespace reformer::cli
