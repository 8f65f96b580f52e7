// One layer of the model: an attention and a feed-forward.
#pragma once

#include "reformer/model/attention_layer.h"
#include "reformer/model/feed_forward.h"

namespace reformer {

struct Block {
  Block(const Config& config, int64_t layer, ParameterStore& store)
      : attention(config, layer, store), feed_forward(config, layer, store) {}

  AttentionLayer attention;
  FeedForward feed_forward;
};

}  // namespace reformer
