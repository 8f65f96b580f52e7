#include "reformer/io/huggingface_names.h"

namespace reformer::huggingface {
namespace {

using Names = std::map<std::string, std::string>;

void add_block(int64_t block, AttentionKind kind, Names& names) {
  const std::string ours = "blocks." + std::to_string(block) + ".";
  const std::string theirs =
      "reformer.encoder.layers." + std::to_string(block) + ".";
  const auto add = [&](const char* our_name, const char* their_name) {
    names[ours + our_name] = theirs + their_name;
  };
  add("attention.norm.weight", "attention.layer_norm.weight");
  add("attention.norm.bias", "attention.layer_norm.bias");
  if (is_local(kind)) {
    add("attention.q.weight", "attention.self_attention.query.weight");
    add("attention.k.weight", "attention.self_attention.key.weight");
  } else {
    add("attention.qk.weight", "attention.self_attention.query_key.weight");
  }
  add("attention.v.weight", "attention.self_attention.value.weight");
  add("attention.output.weight", "attention.output.dense.weight");
  add("feed_forward.norm.weight", "feed_forward.layer_norm.weight");
  add("feed_forward.norm.bias", "feed_forward.layer_norm.bias");
  add("feed_forward.in.weight", "feed_forward.dense.dense.weight");
  add("feed_forward.in.bias", "feed_forward.dense.dense.bias");
  add("feed_forward.out.weight", "feed_forward.output.dense.weight");
  add("feed_forward.out.bias", "feed_forward.output.dense.bias");
}

std::string axis_name(size_t axis) {
  return "positions." + std::to_string(axis) + ".weight";
}

}  // namespace

std::map<std::string, std::string> their_names(const ModelConfig& model) {
  Names names = {
      {"head.norm.weight", "reformer.encoder.layer_norm.weight"},
      {"head.norm.bias", "reformer.encoder.layer_norm.bias"},
      {"head.weight", "lm_head.decoder.weight"},
      {"head.bias", "lm_head.bias"},
  };
  const std::string positions = "reformer.embeddings.position_embeddings.";
  if (model.positions == PositionKind::kLearned) {
    names["positions.weight"] = positions + "embedding.weight";
  }
  for (size_t axis = 0; axis < model.axial_shape.size(); ++axis) {
    names[axis_name(axis)] = positions + "weights." + std::to_string(axis);
  }
  const auto kinds = layer_attentions(model);
  for (size_t block = 0; block < kinds.size(); ++block) {
    add_block(int64_t(block), kinds[block], names);
  }
  return names;
}

std::vector<int64_t> their_sizes(const ModelConfig& model,
                                 const NamedTensor& ours) {
  for (size_t axis = 0; axis < model.axial_shape.size(); ++axis) {
    if (ours.name != axis_name(axis)) continue;
    std::vector<int64_t> sizes(model.axial_shape.size(), 1);
    sizes[axis] = model.axial_shape[axis];
    sizes.push_back(model.axial_dims[axis]);
    return sizes;
  }
  return ours.value.sizes().vec();
}

}  // namespace reformer::huggingface
