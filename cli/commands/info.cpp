#include "cli/commands/info.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/config_options.h"
#include "cli/screen/model_summary.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "reformer/base/errors.h"
#include "reformer/config/bucket_count.h"
#include "reformer/config/config_json.h"
#include "reformer/config/config_library.h"
#include "reformer/device/device.h"
#include "reformer/model/prediction.h"

namespace reformer::cli {
namespace {

struct InfoOptions {
  ConfigOptions config;
  double tflops = 0;  // a second; 0: not said
  int64_t ranks = 1;
  bool json = false;
};

int64_t checked(int64_t ranks, const Config& config) {
  const int64_t sharing = config.train.sequence_parallel;
  require(ranks % sharing == 0,
          "--ranks: a multiple of train.sequence_parallel = ", sharing,
          " is required, got ", ranks);
  return ranks;
}

// All that is printed, computed once.
struct Info {
  Info(const Config& given, at::DeviceType on, const InfoOptions& options)
      : config(given),
        device(on),
        tflops(options.tflops),
        ranks(checked(options.ranks, given)),
        rank_bytes(predict_memory_of_rank(given, on, ranks).peak.total()),
        parameters(count_parameters(given)),
        memory(predict_memory(given, on)),
        flops(predict_flops(given)) {}

  Config config;
  at::DeviceType device;
  double tflops;
  int64_t ranks;
  int64_t rank_bytes;  // of one of them, at a step's peak
  ParameterCounts parameters;
  PeakPrediction memory;
  FlopsPrediction flops;

  double flops_of_all_steps() const {
    return flops.total() * double(config.train.steps);
  }
  double hours() const { return flops_of_all_steps() / (tflops * 1e12) / 3600; }
};

template <class Number>
using Parts = std::vector<std::pair<const char*, Number>>;

Parts<int64_t> parameter_parts(const ParameterCounts& counts) {
  return {
      {"embedding", counts.embedding},       {"ngrams", counts.ngrams},
      {"positions", counts.positions},       {"attention", counts.attention},
      {"feed_forward", counts.feed_forward}, {"head", counts.head}};
}

Parts<int64_t> memory_parts(const MemoryPrediction& peak) {
  return {{"parameters", peak.parameters},
          {"gradients", peak.gradients},
          {"optimizer_state", peak.optimizer_state},
          {"streams", peak.streams},
          {"activations", peak.activations},
          {"bucket_ids", peak.bucket_ids},
          {"working", peak.working}};
}

Parts<int64_t> working_parts(const PeakPrediction& memory) {
  return {{"attention", memory.attention},
          {"feed_forward", memory.feed_forward},
          {"loss", memory.loss}};
}

Parts<double> flops_parts(const FlopsPrediction& flops) {
  return {{"forward", flops.forward},
          {"backward", flops.backward},
          {"recomputation", flops.recomputation}};
}

std::string gigaflops(double flops) { return fixed(flops / 1e9, 1, " GFLOP"); }

std::string flops_of_a_run(double flops) {
  return flops < 1e14 ? gigaflops(flops) : fixed(flops / 1e15, 1, " PFLOP");
}

// Names as people read them: "feed_forward" as "feed-forward".
std::string line(std::string name, const std::string& value) {
  if (name == "feed_forward") name = "feed-forward";
  std::replace(name.begin(), name.end(), '_', ' ');
  constexpr int kIndent = 2;
  const int width = static_cast<int>(name.size());
  return table_row({{kIndent + width, "", ""}, {36 - width, "", ""}},
                   {name, value});
}

// What it would take not to compute activations again.
std::string stored_line(Config config, at::DeviceType device) {
  if (config.model.block != BlockKind::kReversible) return "";
  if (config.train.offload) return "";  // for reversible ones
  config.model.block = BlockKind::kStored;
  const auto bytes = predict_memory(config, device).peak.total();
  return line("total if stored", mebibytes(bytes));
}

std::string describe_memory(const Info& info) {
  const auto& memory = info.memory;
  std::string text = "memory of a step on a " +
                     std::string(info.device == at::kCPU ? "CPU" : "GPU") +
                     ", predicted: at its peak, in " + memory.peak.part + "\n";
  for (const auto& [name, bytes] : memory_parts(memory.peak)) {
    if (bytes > 0) text += line(name, mebibytes(bytes));
  }
  text += line("total", mebibytes(memory.peak.total()));
  text += stored_line(info.config, info.device);
  if (info.ranks > 1) {
    text += line("a rank of " + std::to_string(info.ranks),
                 mebibytes(info.rank_bytes));
  }
  text += "working memory, of one part at a time\n";
  for (const auto& [name, bytes] : working_parts(memory)) {
    text += line(name, mebibytes(bytes));
  }
  return text;
}

std::string text_of(const Info& info) {
  std::string text = describe_model(info.config) + "parameters\n";
  for (const auto& [name, count] : parameter_parts(info.parameters)) {
    text += line(name, grouped(count));
  }
  text += line("total", grouped(info.parameters.total()));
  text += describe_memory(info);
  text += "arithmetic of a step: " + grouped(tokens_per_step(info.config)) +
          " tokens, about " + fixed(mean_keys_per_query(info.config), 0) +
          " keys a query\n";
  for (const auto& [name, flops] : flops_parts(info.flops)) {
    text += line(name, gigaflops(flops));
  }
  text += line("total", gigaflops(info.flops.total()));
  text += "all " + grouped(info.config.train.steps) + " steps\n" +
          line("arithmetic", flops_of_a_run(info.flops_of_all_steps()));
  if (info.tflops > 0) {
    text += line("time at " + fixed(info.tflops, 0) + " TFLOP/s",
                 fixed(info.hours(), 1, " hours"));
  }
  return text;
}

template <class Number>
nlohmann::ordered_json json_of(const Parts<Number>& parts) {
  nlohmann::ordered_json object;
  for (const auto& [name, number] : parts) object[name] = number;
  return object;
}

std::string json_of(const Info& info) {
  const auto& config = info.config;
  nlohmann::ordered_json object;
  object["device"] = info.device == at::kCPU ? "cpu" : "cuda";
  object["parameters"] = json_of(parameter_parts(info.parameters));
  object["parameters"]["total"] = info.parameters.total();
  object["peak_bytes"] = json_of(memory_parts(info.memory.peak));
  object["peak_bytes"]["total"] = info.memory.peak.total();
  object["peak_part"] = info.memory.peak.part;
  object["ranks"] = info.ranks;
  object["rank_peak_bytes"] = info.rank_bytes;
  object["working_bytes"] = json_of(working_parts(info.memory));
  object["tokens_per_step"] = tokens_per_step(config);
  object["flops_per_step"] = json_of(flops_parts(info.flops));
  object["flops_per_step"]["total"] = info.flops.total();
  object["steps"] = config.train.steps;
  if (info.tflops > 0) object["hours"] = info.hours();
  object["keys_per_query"] = mean_keys_per_query(config);
  object["positions"] = config.model.positions.name();
  object["longest_input"] = longest_input(config);  // 0: any
  if (has_lsh(config)) object["n_buckets"] = bucket_count(config);
  object["config"] = nlohmann::ordered_json::parse(config_to_json(config));
  return object.dump() + "\n";
}

// A run's folder stands for the config in it; a name comes before a folder, as
// it does before a file.
std::string source_of(const std::string& name) {
  const auto names = config_names();
  const bool known = std::find(names.begin(), names.end(), name) != names.end();
  if (known || !std::filesystem::is_directory(name)) return name;
  const auto file = std::filesystem::path(name) / "config.json";
  require(std::filesystem::exists(file), name,
          ": no run is in this folder, there is no config.json");
  return file.string();
}

// A GPU's memory can be predicted where there is none.
at::DeviceType device_of(ConfigOptions options) {
  const bool cuda = cuda_index(options.device).has_value();
  if (cuda) options.device = "cpu";
  const auto here = options.use_machine();  // each thread has scratch memory
  return cuda ? at::kCUDA : here.type();
}

void run_info(InfoOptions options) {
  const auto device = device_of(options.config);
  options.config.name = source_of(options.config.name);
  const Config config = options.config.load();
  check(config);
  // Of one sequence at least.
  options.ranks = std::max(options.ranks, config.train.sequence_parallel);
  const Info info(config, device, options);
  Report report(options.json);
  report.text(text_of(info));
  report.json(json_of(info));
}

}  // namespace

void add_info(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand(
      "info", "Show a config's parameters, memory and arithmetic");
  const auto options = std::make_shared<InfoOptions>();
  options->config.add_to(command);
  auto* source = command.get_option("CONFIG");
  source->description(source->get_description() + "; or a run's folder");
  command
      .add_option("--tflops", options->tflops,
                  "also the hours that all steps take at so many TFLOP/s, "
                  "which `bench train` tells: the total below by its seconds")
      ->check(positive_number())
      ->take_last()
      ->type_name("N");
  command
      .add_option("--ranks", options->ranks,
                  "also the memory of one of so many ranks, which share a "
                  "step's sequences [train.sequence_parallel]")
      ->check(whole_number(1, 1 << 20))
      ->take_last()
      ->type_name("N");
  command.add_flag("--json", options->json, "one JSON object on stdout");
  command.callback(
      [options, &action] { action = [options] { run_info(*options); }; });
}

}  // namespace reformer::cli
