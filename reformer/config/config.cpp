#include "reformer/config/config.h"

#include <algorithm>
#include <cmath>

namespace reformer {
namespace {

std::vector<AttentionKind> repeated(const AttentionKinds& kinds,
                                    int64_t layers) {
  std::vector<AttentionKind> each;
  for (int64_t layer = 0; layer < layers; ++layer) {
    each.push_back(kinds.of_layer(layer));
  }
  return each;
}

}  // namespace

std::vector<AttentionKind> layer_attentions(const ModelConfig& model) {
  return repeated(model.attention, model.layers);
}

std::vector<AttentionKind> encoder_attentions(const ModelConfig& model) {
  return repeated(model.encoder_attention, model.encoder_layers);
}

int64_t successor_heads(const ModelConfig& model) {
  return std::llround(model.successor_fraction * double(model.heads));
}

int64_t hashed_heads(const Config& config) {
  return config.lsh.hashed_heads == HashedHeads::kAll
             ? config.model.heads
             : successor_heads(config.model);
}

int64_t local_window_of_hashed(const Config& config) {
  return config.lsh.local_heads == LocalHeads::kAll ? config.lsh.local_window
                                                    : 0;
}

int64_t local_chunk_length(const Config& config) {
  return config.model.local_chunk_length != 0 ? config.model.local_chunk_length
                                              : config.lsh.chunk_length;
}

int64_t rotary_pairs(const ModelConfig& model) {
  return model.positions == PositionKind::kRotary ? head_size(model) / 2 : 0;
}

int64_t ngram_tables(const ModelConfig& model) {
  return std::max<int64_t>(model.ngram_length - 1, 0);
}

int64_t convolution_taps(const ModelConfig& model) {
  return std::max<int64_t>(model.short_convolution - 1, 0);
}

int64_t toy_vocabulary(const TaskConfig& task) { return 3 + 2 * task.alphabet; }

int64_t recall_pairs(const Config& config) {
  const int64_t slots = config.train.length / (config.task.key_length + 1);
  return std::max<int64_t>(1, 2 * slots / 5);
}

int64_t head_size(const ModelConfig& model) {
  return model.d_head != 0 ? model.d_head : model.d_model / model.heads;
}

}  // namespace reformer
