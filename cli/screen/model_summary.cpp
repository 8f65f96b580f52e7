#include "cli/screen/model_summary.h"

#include <sstream>

#include "cli/process/machine.h"
#include "cli/screen/table.h"
#include "reformer/config/bucket_count.h"
#include "reformer/model/prediction.h"

namespace reformer::cli {
namespace {

std::string ngrams_of(const ModelConfig& model) {
  if (model.ngram_length == 0) return "";
  return ", n-grams of up to " + std::to_string(model.ngram_length);
}

std::string convolution_of(const ModelConfig& model) {
  if (model.short_convolution == 0) return "";
  return ", short convolutions of " + std::to_string(model.short_convolution);
}

std::string ngram_rounds_of(const LshConfig& lsh) {
  if (lsh.ngrams.empty()) return "";
  std::string text = ", and of n-grams of ";
  for (std::size_t i = 0; i < lsh.ngrams.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(lsh.ngrams[i]);
  }
  return text;
}

// Of "  model   " and the others, which are as wide.
constexpr const char* kIndent = "\n          ";

std::string tokenizer_of(const Config& config, const Task& task) {
  const auto tokenizer = task.tokenizer();
  if (tokenizer == nullptr) return "";
  return std::string(kIndent) + "tokens are the " +
         grouped(tokenizer->vocabulary_size()) + " pieces of " +
         (config.task.tokenizer.empty() ? "a tokenizer made of them"
                                        : config.task.tokenizer);
}

std::string data_of(const Config& config, const Task& task) {
  const auto sizes = task.sizes();
  if (sizes.training == 0) return config.task.name.name() + ", made up";
  const bool images = config.task.name == TaskKind::kImages;
  const int64_t unit = images ? config.train.length : 1;
  const auto amount = [&](int64_t tokens) { return grouped(tokens / unit); };
  const std::string units = images ? " images"
                            : config.task.name == TaskKind::kTranslation
                                ? " pairs"
                            : task.tokenizer() != nullptr ? " tokens"
                                                          : " bytes";
  return config.task.data + kIndent + "training " + amount(sizes.training) +
         ", validation " + amount(sizes.validation) + ", test " +
         amount(sizes.test) + units + tokenizer_of(config, task);
}

// What a step takes, and which share of an epoch that is (0: there is none).
struct StepSize {
  std::string text;
  double epochs;
};

StepSize step_size(const Config& config, const Task& task) {
  const auto& train = config.train;
  std::ostringstream text;
  const bool sentences = config.task.name == TaskKind::kTranslation ||
                         config.task.name == TaskKind::kTranslationToy;
  if (sentences) {
    if (train.batch_tokens > 0) {
      text << "up to " << grouped(train.batch_tokens * train.accumulate)
           << " source and target tokens";
    } else {
      text << train.batch * train.accumulate << " sentences";
    }
    const int64_t batches = task.epoch_batches();
    return {text.str(),
            batches > 0 ? double(train.accumulate) / double(batches) : 0};
  }
  const int64_t tokens = train.batch * train.accumulate * train.length;
  text << grouped(tokens) << " tokens (" << train.batch;
  if (train.accumulate > 1) text << " x " << train.accumulate;
  const bool one = train.batch * train.accumulate == 1;
  text << (one ? " sequence of " : " sequences of ") << grouped(train.length)
       << ")";
  const int64_t epoch = task.sizes().training;
  return {text.str(), epoch > 0 ? double(tokens) / double(epoch) : 0};
}

std::string steps_of(const Config& config, const Task& task) {
  const auto& train = config.train;
  const auto step = step_size(config, task);
  std::ostringstream text;
  text << grouped(train.steps) << " of " << step.text;
  if (step.epochs > 0) {
    const double epochs = step.epochs * double(train.steps);
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
  const auto& model = config.model;
  return model.attention.contains(AttentionKind::kLsh) ||
         (model.encoder_layers > 0 &&
          model.encoder_attention.contains(AttentionKind::kLsh));
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
  const auto layers = [&](int64_t count, const AttentionKinds& attention) {
    return counted(count, model.block.name() + " layer") + " (" +
           attention.names() + ")";
  };
  const std::string encoder =
      model.encoder_layers > 0
          ? "encoder of " +
                layers(model.encoder_layers, model.encoder_attention) +
                ", decoder of "
          : "";
  return encoder + layers(model.layers, model.attention) + ", d_model " +
         std::to_string(model.d_model) + ", d_ff " +
         std::to_string(model.d_ff) + ", " + counted(model.heads, "head") +
         " of " + std::to_string(head_size(model)) + ", vocabulary " +
         std::to_string(model.vocabulary) + ngrams_of(model) +
         convolution_of(model) + "\n" + model.positions.name() +
         " positions, inputs of " +
         (longest == 0 ? "any length" : "up to " + grouped(longest)) +
         (has_lsh(config) ? "; " + counted(config.lsh.rounds, "hash round") +
                                " of " + std::to_string(bucket_count(config)) +
                                " buckets" + ngram_rounds_of(config.lsh)
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
