// Their config.json as our settings.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "reformer/base/json_text.h"
#include "reformer/config/bucket_count.h"
#include "reformer/io/huggingface.h"

namespace reformer {
namespace {

using Json = nlohmann::ordered_json;

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
  const int64_t chunks = length / chunk;
  int64_t bits = 0;
  while ((int64_t{2} << bits) <= 2 * chunks) ++bits;
  bits = std::max<int64_t>(bits, 1);
  const int64_t limit = 2 * std::max(int64_t(std::sqrt(double(chunks))), chunk);
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

}  // namespace

Config huggingface_config(const std::string& json,
                          const ImportOptions& options) {
  return config_of(parse_json<Json>(json), options);
}

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

}  // namespace reformer
