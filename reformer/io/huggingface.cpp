#include "reformer/io/huggingface.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "reformer/base/atomic_file.h"
#include "reformer/base/input_file.h"
#include "reformer/base/json_text.h"
#include "reformer/config/bucket_count.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/safetensors.h"
#include "reformer/model/language_model.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kBytes = 256;
constexpr int64_t kByteOffset = 2;  // of the published model of bytes
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kPickled = "pytorch_model.bin";
constexpr const char* kPieces = "spiece.model";

// --- Their config ------------------------------------------------------------

// A field of theirs; where it is missing, what `transformers` takes.
template <class T>
T field(const Json& json, const char* key, const T& otherwise) {
  if (!json.contains(key) || json.at(key).is_null()) return otherwise;
  try {
    return json.at(key).get<T>();
  } catch (const Json::exception&) {
    throw Error(std::string(key) +
                ": is not what it has to be: " + excerpt(json.at(key)));
  }
}

template <class T>
void require_field(const Json& json, const char* key, const T& needed) {
  const T given = field<T>(json, key, needed);
  require(given == needed, key, ": ", Json(needed).dump(),
          " is required, all that this program knows, got ",
          Json(given).dump());
}

std::vector<std::string> attention_names(const Json& json) {
  return field<std::vector<std::string>>(
      json, "attn_layers", {"local", "lsh", "local", "lsh", "local", "lsh"});
}

std::string our_attention_names(const std::vector<std::string>& theirs) {
  std::string names;
  for (const auto& name : theirs) {
    require(name == "local" || name == "lsh",
            "attn_layers: local and lsh are known, got ", shortened(name));
    if (!names.empty()) names += ',';
    names += name == "local" ? "local_separate_qk" : "lsh_huggingface";
  }
  require(!names.empty(), "attn_layers: at least one is required, got none");
  return names;
}

std::string our_activation(const std::string& theirs) {
  if (theirs == "gelu") return "gelu_erf";
  if (theirs == "gelu_new" || theirs == "gelu_pytorch_tanh") return "gelu";
  require(theirs == "relu",
          "hidden_act: relu, gelu or gelu_new is required, got ",
          shortened(theirs));
  return theirs;
}

// What `transformers` sets on first use where there is none: a power of two
// nearest below 2 length / chunk, in two factors where it is large.
std::vector<int64_t> their_bucket_factors(int64_t length, int64_t chunk) {
  int64_t bits = 0;
  while ((int64_t{2} << bits) <= 2 * (length / chunk)) ++bits;
  bits = std::max<int64_t>(bits, 1);
  const int64_t limit =
      2 * std::max(int64_t(std::sqrt(double(length / chunk))), chunk);
  if ((int64_t{1} << bits) <= limit) return {int64_t{1} << bits};
  return {int64_t{1} << (bits / 2), int64_t{1} << (bits - bits / 2)};
}

std::vector<int64_t> bucket_factors_of(const Json& json, int64_t length,
                                       int64_t chunk) {
  if (!json.contains("num_buckets") || json.at("num_buckets").is_null()) {
    return their_bucket_factors(length, chunk);
  }
  if (json.at("num_buckets").is_number_integer()) {
    return {json.at("num_buckets").get<int64_t>()};
  }
  return field<std::vector<int64_t>>(json, "num_buckets", {});
}

void take_positions(const Json& json, int64_t longest, int64_t length,
                    Config& config) {
  if (!field(json, "axial_pos_embds", true)) {
    config.model.positions = PositionKind::kLearned;
    config.train.length = longest;  // whose table has so many rows
    return;
  }
  config.model.positions = PositionKind::kAxial;
  config.model.axial_shape =
      field<std::vector<int64_t>>(json, "axial_pos_shape", {64, 64});
  config.model.axial_dims =
      field<std::vector<int64_t>>(json, "axial_pos_embds_dim", {64, 192});
  int64_t positions = 1;
  for (const int64_t n : config.model.axial_shape) {
    require(n >= 1 && n <= (int64_t{1} << 31) / positions,
            "axial_pos_shape: whole numbers from 1 on with a product of at "
            "most 2^31 are required, got ",
            n);
    positions *= n;
  }
  config.train.length = std::min(positions, length);
}

Config config_of(const Json& json, const ImportOptions& options) {
  require(json.is_object() &&
              field<std::string>(json, "model_type", "") == "reformer",
          "model_type: reformer is required, got ",
          json.is_object() ? excerpt(json.value("model_type", Json()))
                           : excerpt(json));
  require_field(json, "is_decoder", true);
  require_field(json, "tie_word_embeddings", false);
  for (const char* kind : {"local", "lsh"}) {
    require_field<int64_t>(
        json, (std::string(kind) + "_num_chunks_before").c_str(), 1);
    require_field<int64_t>(
        json, (std::string(kind) + "_num_chunks_after").c_str(), 0);
  }
  Config config;
  auto& model = config.model;
  const auto names = attention_names(json);
  model.layers = std::ssize(names);
  model.attention = AttentionKinds(our_attention_names(names));
  model.d_model = field<int64_t>(json, "hidden_size", 256);
  model.d_ff = field<int64_t>(json, "feed_forward_size", 512);
  model.heads = field<int64_t>(json, "num_attention_heads", 12);
  model.d_head = field<int64_t>(json, "attention_head_size", 64);
  model.vocabulary = field<int64_t>(json, "vocab_size", 320);
  model.activation =
      our_activation(field<std::string>(json, "hidden_act", "relu"));
  model.dropout = field(json, "hidden_dropout_prob", 0.05);
  model.norm_epsilon = field(json, "layer_norm_eps", 1e-12);
  model.local_chunk_length =
      field<int64_t>(json, "local_attn_chunk_length", 64);
  config.lsh.chunk_length = field<int64_t>(json, "lsh_attn_chunk_length", 64);
  config.lsh.rounds = field<int64_t>(json, "num_hashes", 1);
  const int64_t longest = field<int64_t>(json, "max_position_embeddings", 4096);
  constexpr int64_t kLongest = std::numeric_limits<int32_t>::max();
  require(config.lsh.chunk_length >= 1 && longest >= 1 && longest <= kLongest,
          "lsh_attn_chunk_length, max_position_embeddings: from 1 to ",
          kLongest, " is required, got ", config.lsh.chunk_length, " and ",
          longest);
  take_positions(json, longest, options.length, config);
  if (model.attention.contains(AttentionKind::kLshHuggingface)) {
    model.bucket_factors =
        bucket_factors_of(json, longest, config.lsh.chunk_length);
  }
  return config;
}

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

// --- Names -------------------------------------------------------------------

struct NamePair {
  std::string theirs;
  std::string ours;
};

std::vector<NamePair> block_names(int64_t block, AttentionKind kind) {
  const std::string theirs =
      "reformer.encoder.layers." + std::to_string(block) + ".";
  const std::string ours = "blocks." + std::to_string(block) + ".";
  std::vector<NamePair> names;
  const auto add = [&](const char* their_name, const char* our_name) {
    names.push_back({theirs + their_name, ours + our_name});
  };
  add("attention.layer_norm.weight", "attention.norm.weight");
  add("attention.layer_norm.bias", "attention.norm.bias");
  if (is_local(kind)) {
    add("attention.self_attention.query.weight", "attention.q.weight");
    add("attention.self_attention.key.weight", "attention.k.weight");
  } else {
    add("attention.self_attention.query_key.weight", "attention.qk.weight");
  }
  add("attention.self_attention.value.weight", "attention.v.weight");
  add("attention.output.dense.weight", "attention.output.weight");
  add("feed_forward.layer_norm.weight", "feed_forward.norm.weight");
  add("feed_forward.layer_norm.bias", "feed_forward.norm.bias");
  add("feed_forward.dense.dense.weight", "feed_forward.in.weight");
  add("feed_forward.dense.dense.bias", "feed_forward.in.bias");
  add("feed_forward.output.dense.weight", "feed_forward.out.weight");
  add("feed_forward.output.dense.bias", "feed_forward.out.bias");
  return names;
}

const char* const kTheirEmbedding =
    "reformer.embeddings.word_embeddings.weight";
const char* const kOurEmbedding = "embedding.weight";

// All but the embedding, which differs by a row and a factor.
std::vector<NamePair> names_of(const ModelConfig& model) {
  std::vector<NamePair> names;
  const std::string positions = "reformer.embeddings.position_embeddings.";
  if (model.positions == PositionKind::kLearned) {
    names.push_back({positions + "embedding.weight", "positions.weight"});
  }
  for (size_t axis = 0; axis < model.axial_shape.size(); ++axis) {
    const std::string number = std::to_string(axis);
    names.push_back(
        {positions + "weights." + number, "positions." + number + ".weight"});
  }
  const auto kinds = layer_attentions(model);
  for (size_t block = 0; block < kinds.size(); ++block) {
    const auto more = block_names(int64_t(block), kinds[block]);
    names.insert(names.end(), more.begin(), more.end());
  }
  names.push_back({"reformer.encoder.layer_norm.weight", "head.norm.weight"});
  names.push_back({"reformer.encoder.layer_norm.bias", "head.norm.bias"});
  names.push_back({"lm_head.decoder.weight", "head.weight"});
  names.push_back({"lm_head.bias", "head.bias"});
  return names;
}

// Buffers, and a bias that is there twice.
bool is_ignored(const std::string& name) {
  return name.find("mask_value_float") != std::string::npos ||
         name == "lm_head.decoder.bias";
}

// --- Their weights -----------------------------------------------------------

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

std::vector<int64_t> their_sizes(const ModelConfig& model,
                                 const NamedTensor& ours) {
  std::vector<int64_t> sizes(ours.value.sizes().begin(),
                             ours.value.sizes().end());
  for (size_t axis = 0; axis < model.axial_shape.size(); ++axis) {
    if (ours.name != "positions." + std::to_string(axis) + ".weight") continue;
    sizes.assign(model.axial_shape.size(), 1);
    sizes[axis] = model.axial_shape[axis];
    sizes.push_back(model.axial_dims[axis]);
  }
  return sizes;
}

// Of our parameters, so that sizes are said once, by the model itself.
std::vector<NamedTensor> imported(const Config& config,
                                  const std::vector<NamedTensor>& ours,
                                  TheirTensors theirs) {
  const auto& model = config.model;
  std::map<std::string, std::string> names;
  for (const auto& [their_name, our_name] : names_of(model)) {
    names[our_name] = their_name;
  }
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

// --- Export ------------------------------------------------------------------

void require_theirs(const Config& config) {
  const auto& model = config.model;
  const auto require_as = [](bool holds, const char* key, const char* needed) {
    require(holds, "export: ", key, ": ", needed,
            " is required of a Reformer of Hugging Face's");
  };
  for (const auto kind : layer_attentions(model)) {
    require_as(kind == AttentionKind::kLocalSeparateQk || hashes(kind),
               "model.attention", "local_separate_qk, lsh_huggingface or lsh");
  }
  require_as(model.encoder_layers == 0, "model.encoder_layers", "0");
  require_as(model.block != BlockKind::kResidual, "model.block",
             "reversible or stored");
  require_as(model.positions == PositionKind::kAxial ||
                 model.positions == PositionKind::kLearned,
             "model.positions", "axial or learned");
  require_as(
      model.positions != PositionKind::kAxial || model.axial_shape.size() == 2,
      "model.axial_shape", "two axes");
  require_as(model.ngram_length == 0, "model.ngram_length", "0");
  require_as(model.successor_fraction == 0, "model.successor_fraction", "0");
  require_as(config.lsh.local_window == 0, "lsh.local_window", "0");
  require_as(config.lsh.ngrams.empty(), "lsh.ngrams", "none");
  require_as(!config.task.tokenizer.empty() || config.task.byte_offset > 0 ||
                 config.task.name == TaskKind::kNone,
             "task.byte_offset",
             "at least 1 (their token 0 is where texts start)");
}

std::string their_activation(ActivationKind kind) {
  if (kind == ActivationKind::kRelu) return "relu";
  return kind == ActivationKind::kGelu ? "gelu_new" : "gelu";
}

Json their_config(const Config& config) {
  const auto& [task, model, lsh, train, distributed] = config;
  Json json;
  json["architectures"] = {"ReformerModelWithLMHead"};
  json["model_type"] = "reformer";
  json["is_decoder"] = true;
  json["tie_word_embeddings"] = false;
  for (const auto kind : layer_attentions(model)) {
    json["attn_layers"].push_back(hashes(kind) ? "lsh" : "local");
  }
  json["num_hidden_layers"] = model.layers;
  json["hidden_size"] = model.d_model;
  json["feed_forward_size"] = model.d_ff;
  json["num_attention_heads"] = model.heads;
  json["attention_head_size"] = head_size(model);
  json["vocab_size"] = model.vocabulary;
  json["hidden_act"] = their_activation(model.activation);
  json["hidden_dropout_prob"] = model.dropout;
  json["layer_norm_eps"] = model.norm_epsilon;
  json["local_attn_chunk_length"] = local_chunk_length(config);
  json["lsh_attn_chunk_length"] = lsh.chunk_length;
  for (const char* kind : {"local", "lsh"}) {
    json[std::string(kind) + "_num_chunks_before"] = 1;
    json[std::string(kind) + "_num_chunks_after"] = 0;
    json[std::string(kind) + "_attention_probs_dropout_prob"] = 0.0;
  }
  json["num_hashes"] = lsh.rounds;
  auto factors = model.bucket_factors;
  if (factors.empty()) {
    factors = {lsh.n_buckets != 0
                   ? lsh.n_buckets
                   : default_bucket_count(train.length, lsh.chunk_length)};
  }
  if (factors.size() == 1) {
    json["num_buckets"] = factors[0];
  } else {
    json["num_buckets"] = factors;
  }
  json["hash_seed"] = nullptr;
  const bool axial = model.positions == PositionKind::kAxial;
  json["axial_pos_embds"] = axial;
  if (axial) {
    json["axial_pos_shape"] = model.axial_shape;
    json["axial_pos_embds_dim"] = model.axial_dims;
  }
  json["max_position_embeddings"] =
      axial
          ? std::accumulate(model.axial_shape.begin(), model.axial_shape.end(),
                            int64_t{1}, std::multiplies<>())
          : train.length;
  json["pad_token_id"] = 0;
  json["eos_token_id"] = 2;
  return json;
}

// Their row 0 is where texts start, as our start token's; no text has it.
at::Tensor their_embedding(const ModelConfig& model, const at::Tensor& ours) {
  auto table = ours.to(at::kFloat) * std::sqrt(double(model.d_model));
  table[0].copy_(table[model.vocabulary]);
  return table.narrow(0, 0, model.vocabulary).contiguous();
}

std::vector<NamedTensor> exported(const Config& config,
                                  const std::vector<NamedTensor>& ours) {
  std::map<std::string, std::string> names;
  for (const auto& [their_name, our_name] : names_of(config.model)) {
    names[our_name] = their_name;
  }
  std::vector<NamedTensor> theirs;
  for (const auto& parameter : ours) {
    const auto value = parameter.value.detach();
    if (parameter.name == kOurEmbedding) {
      theirs.push_back({kTheirEmbedding, their_embedding(config.model, value)});
    } else {
      theirs.push_back(
          {names.at(parameter.name),
           value.to(at::kFloat).reshape(their_sizes(config.model, parameter))});
    }
  }
  return theirs;
}

}  // namespace

Config with_our_attention(Config config) {
  auto& model = config.model;
  if (!model.attention.contains(AttentionKind::kLshHuggingface)) return config;
  std::string names;
  for (const auto kind : layer_attentions(model)) {
    const auto ours =
        kind == AttentionKind::kLshHuggingface ? AttentionKind::kLsh : kind;
    if (!names.empty()) names += ',';
    names += name_of(ours);
  }
  model.attention = AttentionKinds(names);
  const int64_t buckets =
      std::accumulate(model.bucket_factors.begin(), model.bucket_factors.end(),
                      int64_t{1}, std::multiplies<>());
  config.lsh.n_buckets = nearest_bucket_count(double(buckets));
  model.bucket_factors.clear();
  return config;
}

Config huggingface_config(const std::string& json,
                          const ImportOptions& options) {
  return config_of(parse_json<Json>(json), options);
}

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

void export_huggingface(const std::string& folder,
                        const Checkpoint& checkpoint) {
  require_theirs(checkpoint.config);
  with_errors([&] {
    const fs::path path(folder);
    require(!fs::exists(path), folder,
            ": exists already; choose another folder");
    const auto tensors = exported(checkpoint.config, checkpoint.parameters);
    fs::create_directories(path);
    write_safetensors((path / kWeights).string(), tensors, {{"format", "pt"}});
    if (!checkpoint.tokenizer.empty()) {
      write_file_atomically(path / kPieces, checkpoint.tokenizer);
    }
    // Last: a folder with it is whole.
    write_file_atomically(path / kConfigFile,
                          their_config(checkpoint.config).dump(2) + "\n");
  });
}

}  // namespace reformer
