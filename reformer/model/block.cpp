#include "reformer/model/block.h"

namespace reformer {
namespace {

std::string name_of(const BlockPlace& place, const char* part) {
  return "blocks." + std::to_string(place.block) + "." + part + ".";
}

AttentionPlace self_attention(const Config& config, const BlockPlace& place) {
  const auto& kinds =
      place.encoder ? config.model.encoder_attention : config.model.attention;
  return {name_of(place, "attention"), kinds.of_layer(place.layer),
          place.encoder ? AttentionReach::kEverything : AttentionReach::kPast,
          static_cast<uint32_t>(place.block),
          static_cast<uint32_t>(place.first_branch)};
}

std::optional<AttentionLayer> cross_attention_of(const Config& config,
                                                 const BlockPlace& place,
                                                 ParameterStore& store) {
  if (!place.cross) return {};
  return AttentionLayer(
      config,
      {name_of(place, "cross_attention"), AttentionKind::kFull,
       AttentionReach::kSource, static_cast<uint32_t>(place.block),
       static_cast<uint32_t>(place.first_branch + 1)},
      store);
}

}  // namespace

Block::Block(const Config& config, const BlockPlace& place,
             ParameterStore& store)
    : attention(config, self_attention(config, place), store),
      cross_attention(cross_attention_of(config, place, store)),
      feed_forward(config, name_of(place, "feed_forward"),
                   static_cast<uint32_t>(place.first_branch + branches() - 1),
                   store) {}

}  // namespace reformer
