// Their folder as a checkpoint of ours.
#include <ATen/ops/cat.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "reformer/base/input_file.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/finite.h"
#include "reformer/io/huggingface.h"
#include "reformer/io/huggingface_names.h"
#include "reformer/io/safetensors.h"
#include "reformer/model/language_model.h"

namespace reformer {

namespace fs = std::filesystem;

using huggingface::kOurEmbedding;
using huggingface::kPieces;
using huggingface::kTheirEmbedding;
using huggingface::kWeights;
using huggingface::their_names;
using huggingface::their_sizes;

namespace {

constexpr int64_t kBytes = 256;
constexpr int64_t kByteOffset = 2;  // of the published model of bytes
constexpr const char* kPickled = "pytorch_model.bin";

void take_task(const std::string& pieces, Config& config) {
  auto& task = config.task;
  if (!pieces.empty()) {
    task.tokenizer = kPieces;
  } else if (config.model.vocabulary == kBytes + kByteOffset) {
    task.byte_offset = kByteOffset;
  } else {  // what its tokens stand for is not said
    task.name = TaskKind::kNone;
  }
}

// Buffers, and a bias that is there twice.
bool is_ignored(const std::string& name) {
  return name.find("mask_value_float") != std::string::npos ||
         name == "lm_head.decoder.bias";
}

class TheirTensors {
 public:
  explicit TheirTensors(const std::vector<NamedTensor>& tensors) {
    for (const auto& [name, value] : tensors) values_[name] = value;
    const auto bias = values_.find("lm_head.decoder.bias");
    if (bias != values_.end()) values_.emplace("lm_head.bias", bias->second);
  }

  at::Tensor take(const std::string& name, at::IntArrayRef sizes) {
    const auto found = values_.find(name);
    require(found != values_.end(), name, " is missing");
    const auto value = found->second;
    require(value.sizes() == sizes, name, ": sizes ", sizes,
            " are required by config.json, got ", value.sizes());
    values_.erase(found);
    return value.to(at::kFloat);
  }

  void require_none_left() const {
    for (const auto& [name, value] : values_) {
      require(is_ignored(name), name,
              ": is no parameter of a Reformer of this config.json");
    }
  }

 private:
  std::map<std::string, at::Tensor> values_;
};

// Of our parameters, so that sizes are said once, by the model itself.
std::vector<NamedTensor> imported(const Config& config,
                                  const std::vector<NamedTensor>& ours,
                                  TheirTensors theirs) {
  const auto& model = config.model;
  const auto names = their_names(model);
  std::vector<NamedTensor> parameters;
  for (const auto& parameter : ours) {
    if (parameter.name == kOurEmbedding) {
      const auto table =
          theirs.take(kTheirEmbedding, {model.vocabulary, model.d_model});
      parameters.push_back(
          {parameter.name, at::cat({table, table.narrow(0, 0, 1)})
                               .div_(std::sqrt(double(model.d_model)))});
      continue;
    }
    parameters.push_back(
        {parameter.name,
         theirs.take(names.at(parameter.name), their_sizes(model, parameter))
             .reshape(parameter.value.sizes())});
  }
  theirs.require_none_left();
  return parameters;
}

std::vector<NamedTensor> parameters_of(const Config& config) {
  const LanguageModel model(config);
  std::vector<NamedTensor> parameters;
  for (const auto& parameter : model.parameters()) {
    parameters.push_back({parameter.name, parameter.value.detach()});
  }
  return parameters;
}

// What a fault says begins with the file's name.
template <class Body>
auto of_file(const fs::path& path, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(path.string() + ": " + error.what());
  }
}

}  // namespace

Checkpoint import_huggingface(const std::string& folder,
                              const ImportOptions& options) {
  return with_errors([&] {
    const fs::path path(folder);
    require(fs::is_directory(path), folder, ": no such folder");
    require(fs::exists(path / kConfigFile), folder, ": has no ", kConfigFile,
            "; a folder that transformers saved a Reformer to is required");
    require(fs::exists(path / kWeights) || !fs::exists(path / kPickled), folder,
            ": has its weights in ", kPickled,
            ", which Python alone reads; `python3 -m reformer.convert ", folder,
            "` writes ", kWeights, " beside it");
    require(fs::exists(path / kWeights), folder, ": has no ", kWeights);
    Checkpoint checkpoint;
    checkpoint.config = of_file(path / kConfigFile, [&] {
      auto config =
          huggingface_config(read_text((path / kConfigFile).string()), options);
      if (fs::exists(path / kPieces)) {
        checkpoint.tokenizer = read_text((path / kPieces).string());
      }
      take_task(checkpoint.tokenizer, config);
      check(config);
      return config;
    });
    const auto weights = read_safetensors((path / kWeights).string());
    checkpoint.parameters = of_file(path / kWeights, [&] {
      const auto wrong = first_not_finite(weights.tensors);
      require(wrong.empty(), wrong, " holds NaN or infinity");
      return imported(checkpoint.config, parameters_of(checkpoint.config),
                      TheirTensors(weights.tensors));
    });
    if (options.our_attention) {
      checkpoint.config = with_our_attention(checkpoint.config);
      check(checkpoint.config);
    }
    return checkpoint;
  });
}

}  // namespace reformer
