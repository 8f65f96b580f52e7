#include "cli/screen/model_summary.h"

#include <sstream>

#include "cli/process/machine.h"
#include "cli/screen/table.h"
#include "reformer/config/bucket_count.h"
#include "reformer/model/prediction.h"

namespace reformer::cli {
namespace {

// Of "  model   " and the others, which are as wide.
constexpr const char* kIndent = "\n          ";

std::string data_of(const Config& config, const Task& task) {
  const auto sizes = task.sizes();
  if (sizes.training == 0) return config.task.name.name() + ", made up";
  const bool images = config.task.name == TaskKind::kImages;
  const int64_t unit = images ? config.train.length : 1;
  const auto amount = [&](int64_t tokens) { return grouped(tokens / unit); };
  return config.task.data + kIndent + "training " + amount(sizes.training) +
         ", validation " + amount(sizes.validation) + ", test " +
         amount(sizes.test) + (images ? " images" : " bytes");
}

std::string steps_of(const Config& config, const Task& task) {
  const auto& train = config.train;
  const int64_t tokens = train.batch * train.accumulate * train.length;
  std::ostringstream text;
  text << grouped(train.steps) << " of " << grouped(tokens) << " tokens ("
       << train.batch;
  if (train.accumulate > 1) text << " x " << train.accumulate;
  const bool one = train.batch * train.accumulate == 1;
  text << (one ? " sequence of " : " sequences of ") << grouped(train.length)
       << ")";
  const int64_t epoch = task.sizes().training;
  if (epoch > 0) {
    const double epochs = double(tokens) * double(train.steps) / double(epoch);
    text << ", " << fixed(epochs, epochs < 10 ? 2 : 0) << " epochs";
  }
  if (train.minutes > 0) text << "; " << train.minutes << " minutes at most";
  text << kIndent << train.optimizer << ", " << train.schedule
       << " learning rate " << train.learning_rate;
  if (train.warmup > 0) text << ", warm-up " << grouped(train.warmup);
  return text.str();
}

}  // namespace

bool has_lsh(const Config& config) {
  return config.model.attention.contains(AttentionKind::kLsh);
}

int64_t bucket_count(const Config& config) {
  return config.lsh.n_buckets != 0
             ? config.lsh.n_buckets
             : default_bucket_count(config.train.length,
                                    config.lsh.chunk_length);
}

// 1234567 as 1,234,567.
std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = std::ssize(digits) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), 1, ',');
  }
  return digits;
}

std::string mebibytes(int64_t bytes) {
  return fixed(double(bytes) / (1 << 20), 1, " MiB");
}

std::string describe_model(const Config& config) {
  const auto& model = config.model;
  const int64_t longest = longest_input(config);
  return std::to_string(model.layers) + " " + model.block.name() +
         (model.layers == 1 ? " layer (" : " layers (") +
         model.attention.names() + "), d_model " +
         std::to_string(model.d_model) + ", d_ff " +
         std::to_string(model.d_ff) + ", " + std::to_string(model.heads) +
         " heads of " + std::to_string(head_size(model)) + ", vocabulary " +
         std::to_string(model.vocabulary) + "\n" + model.positions.name() +
         " positions, inputs of " +
         (longest == 0 ? "any length" : "up to " + grouped(longest)) +
         (has_lsh(config)
              ? "; " + std::to_string(config.lsh.rounds) + " hash rounds of " +
                    std::to_string(bucket_count(config)) + " buckets"
              : "") +
         "\n";
}

std::string describe_run(const Config& config, const Task& task,
                         c10::Device device, const std::string& directory) {
  std::string model = describe_model(config);
  model.pop_back();
  model.replace(model.find('\n'), 1, kIndent);
  const auto memory = predict_memory(config, device.type()).peak.total();
  return "  model   " + model + kIndent +
         grouped(count_parameters(config).total()) + " parameters\n" +
         "  data    " + data_of(config, task) + "\n" + "  steps   " +
         steps_of(config, task) + "\n" + "  memory  " + mebibytes(memory) +
         " predicted, on " + describe_machine(device) + "\n" + "  writes  " +
         directory + " (all settings: config.json)\n";
}

}  // namespace reformer::cli
