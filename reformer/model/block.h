// One layer of a stack: an attention, of a decoder a cross-attention, and a
// feed-forward.
#pragma once

#include <optional>

#include "reformer/model/attention_layer.h"
#include "reformer/model/feed_forward.h"

namespace reformer {

struct BlockPlace {
  int64_t layer = 0;         // of its stack: chooses the attention
  int64_t block = 0;         // of the model: names parameters, keys hashes
  int64_t first_branch = 0;  // of the model: keys dropout
  bool encoder = false;      // sees what comes after it
  bool cross = false;        // reads an encoder's output, too
};

struct Block {
  Block(const Config& config, const BlockPlace& place, ParameterStore& store);

  int64_t branches() const { return cross_attention ? 3 : 2; }

  AttentionLayer attention;
  std::optional<AttentionLayer> cross_attention;
  FeedForward feed_forward;
};

}  // namespace reformer
