// A checkpoint of ours as their folder.
#include <ATen/TensorOperators.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "reformer/base/atomic_file.h"
#include "reformer/config/bucket_count.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/io/huggingface.h"
#include "reformer/io/huggingface_names.h"
#include "reformer/io/safetensors.h"
#include "reformer/io/unfinished_folder.h"

namespace reformer {

namespace fs = std::filesystem;

using huggingface::kOurEmbedding;
using huggingface::kPieces;
using huggingface::kTheirEmbedding;
using huggingface::kWeights;
using huggingface::their_names;
using huggingface::their_sizes;

namespace {

using Json = nlohmann::ordered_json;

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
  require_as(model.short_convolution == 0, "model.short_convolution", "0");
  require_as(model.activation != ActivationKind::kReluSquared,
             "model.activation", "relu, gelu or gelu_erf");
  require_as(model.successor_fraction == 0, "model.successor_fraction", "0");
  require_as(config.lsh.local_window == 0, "lsh.local_window", "0");
  require_as(config.lsh.ngrams.empty(), "lsh.ngrams", "none");
  require_as(config.lsh.more_rounds == MoreRounds::kUnion, "lsh.more_rounds",
             "union");
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
  const auto names = their_names(config.model);
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

void export_huggingface(const std::string& directory,
                        const Checkpoint& checkpoint) {
  require_theirs(checkpoint.config);
  with_errors([&] {
    const auto tensors = exported(checkpoint.config, checkpoint.parameters);
    make_folder(directory, [&](const fs::path& folder) {
      write_safetensors((folder / kWeights).string(), tensors,
                        {{"format", "pt"}});
      if (!checkpoint.tokenizer.empty()) {
        write_file_atomically(folder / kPieces, checkpoint.tokenizer);
      }
      write_file_atomically(folder / kConfigFile,
                            their_config(checkpoint.config).dump(2) + "\n");
    });
  });
}

}  // namespace reformer
