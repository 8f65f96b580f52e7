#include "cli/serve/served_model.h"

#include <chrono>
#include <filesystem>

#include "reformer/base/errors.h"
#include "reformer/io/checkpoint.h"
#include "reformer/tasks/task_tokenizer.h"
#include "reformer/train/evaluation.h"
#include "reformer/train/trainer.h"

namespace reformer::cli {
namespace {

namespace fs = std::filesystem;

std::string name_of_folder(const std::string& directory) {
  const auto path = fs::weakly_canonical(directory);
  return path.filename().empty() ? "model" : path.filename().string();
}

int64_t time_of(const std::string& directory) {
  std::error_code fault;
  const auto written = fs::last_write_time(directory, fault);
  if (fault) return 0;
  const auto at = std::chrono::file_clock::to_sys(written);
  return std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch())
      .count();
}

nlohmann::ordered_json layers_of(const Config& config) {
  auto layers = nlohmann::ordered_json::array();
  for (int64_t i = 0; i < config.model.layers; ++i) {
    layers.push_back(name_of(config.model.attention.of_layer(i)));
  }
  return layers;
}

}  // namespace

std::string ServedModel::kind() const {
  if (translation) return "translation";
  if (config.task.name == TaskKind::kImages) return "image";
  if (writing->pieces() != nullptr) return "pieces";
  return config.task.name == TaskKind::kText ? "bytes" : "numbers";
}

nlohmann::ordered_json ServedModel::description() const {
  nlohmann::ordered_json json;
  json["kind"] = kind();
  json["task"] = name_of(config.task.name);
  json["vocabulary"] = config.model.vocabulary;
  json["layers"] = layers_of(config);
  json["heads"] = config.model.heads;
  json["d_model"] = config.model.d_model;
  json["rounds"] = config.lsh.rounds;
  json["ngrams"] = config.lsh.ngrams;  // rounds after these
  json["chunk_length"] = config.lsh.chunk_length;
  json["trained_length"] = config.train.length;
  if (kind() == "bytes") json["byte_offset"] = config.task.byte_offset;
  if (kind() == "image") json["image_size"] = config.task.image_size;
  if (language) {
    int64_t parameters = 0;
    for (const auto& parameter : language->parameters()) {
      parameters += parameter.value.numel();
    }
    json["parameters"] = parameters;
  }
  return json;
}

ServedModel load_served_model(const std::string& directory,
                              c10::Device device) {
  const auto checkpoint = load_best_model(directory);
  ServedModel served;
  served.name = name_of_folder(directory);
  served.created = time_of(directory);
  served.config = checkpoint.config;
  const auto tokenizer = run_tokenizer(served.config, checkpoint.tokenizer);
  const auto placement =
      placement_for_use(device, served.config.train.precision);
  if (served.config.model.encoder_layers > 0) {
    require(tokenizer != nullptr, directory,
            ": has no tokenizer, and so no lines of text to translate");
    served.translation =
        std::make_unique<EncoderDecoder>(served.config, placement);
    load_parameters(*served.translation, checkpoint.parameters);
    served.translator = std::make_unique<LineTranslator>(
        *served.translation, tokenizer, TranslatorConfig());
    return served;
  }
  // Under chunk windows later tokens would move what earlier ones saw.
  served.config.lsh.window = Window::kTrailing;
  served.language = std::make_unique<LanguageModel>(served.config, placement);
  load_parameters(*served.language, checkpoint.parameters);
  served.writing = std::make_unique<TokenWriting>(served.config, tokenizer);
  return served;
}

}  // namespace reformer::cli
