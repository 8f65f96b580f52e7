// Which tensors are alive when: a count along the code of the stacks, the head
// and the attentions. A part's function here names what that part holds.
#include <algorithm>
#include <vector>

#include "reformer/core/parallel.h"
#include "reformer/model/feed_forward.h"
#include "reformer/model/language_head.h"
#include "reformer/model/prediction.h"

namespace reformer {
namespace {

constexpr int64_t kFloat = 4;

// Bytes of the tensors that a config is made of.
struct Sizes {
  explicit Sizes(const Config& config)
      : tokens(config.train.batch * config.train.length),
        stream(tokens * config.model.d_model * kFloat),
        heads(tokens * config.model.heads * head_size(config.model) * kFloat),
        head_rows(tokens * config.model.heads),
        inner(tokens * config.model.d_ff * kFloat) {}

  int64_t tokens;
  int64_t stream;     // [tokens, d_model]
  int64_t heads;      // [tokens, heads * d_head]
  int64_t head_rows;  // tokens * heads, in rows
  int64_t inner;      // [tokens, d_ff]
};

bool keeps_activations(const Config& config) {
  return config.model.block != "reversible";
}

int64_t chunk_tokens(const Config& config, int64_t chunk) {
  return std::min(chunk, config.train.length) * config.train.batch;
}

// A gradient that is added to one there is: of the part's largest matrix.
int64_t added_gradient(const Config& config, int64_t chunk, int64_t matrix) {
  const bool first_is_last =
      chunk >= config.train.length && config.train.accumulate == 1;
  return first_is_last ? 0 : matrix * kFloat;
}

// Kept by the attention's graph besides its normed input.
int64_t attention_graph(const Sizes& sizes, const std::string& kind) {
  const int64_t tensors = kind == "full" ? 4 : 3;  // qk, v, output (and k)
  return tensors * sizes.heads + sizes.head_rows * kFloat;
}

// Of a thread: the ring of keys and its scores, or LibTorch's flash attention's
// tiles.
int64_t thread_scratch(const std::string& kind) {
  return kind == "full" ? 1 << 20 : 350 << 10;
}

// At the attention's backward: the graph, the output, its gradient, and those
// of qk and v; order, place and interval of each round, and delta.
int64_t attention_working(const Config& config, const std::string& kind) {
  const Sizes sizes(config);
  const int64_t gradients = kind == "full" ? 4 : 3;
  int64_t bytes = 2 * sizes.stream + attention_graph(sizes, kind) +
                  gradients * sizes.heads + sizes.head_rows * kFloat +
                  threads() * thread_scratch(kind);
  if (kind == "lsh") {
    const int64_t rounds =
        config.lsh.rounds + (config.lsh.local_window > 0 ? 1 : 0);
    bytes += 4 * int64_t{sizeof(int32_t)} * rounds * sizes.head_rows;
  }
  return bytes;
}

// Three of [chunk, d_ff]: what the activation saw, its result or gradient, and
// a gradient; the normed input, the output and its gradient.
int64_t feed_forward_working(const Config& config) {
  const auto& model = config.model;
  const int64_t chunk = feed_forward_chunk(model, config.train.batch);
  const int64_t tokens = chunk_tokens(config, chunk);
  return tokens * (3 * model.d_ff + 3 * model.d_model) * kFloat +
         added_gradient(config, chunk, model.d_ff * model.d_model);
}

// The log-probabilities and two gradients; the joined streams and their norm.
int64_t loss_working(const Config& config) {
  const auto& model = config.model;
  const int64_t chunk = loss_chunk(model, config.train.batch);
  const int64_t tokens = chunk_tokens(config, chunk);
  const int64_t read = model.d_model * (model.block == "residual" ? 1 : 2);
  const int64_t normed = model.block == "residual" ? read : 2 * read;
  const int64_t wide = tokens * (3 * model.vocabulary + normed) * kFloat;
  const int64_t narrow = tokens * (model.vocabulary + normed + read) * kFloat +
                         added_gradient(config, chunk, model.vocabulary * read);
  return std::max(wide, narrow);
}

// What a block's graph holds when activations are kept: both norms and both
// sums, the attention's tensors, and those of [tokens, d_ff] (relu needs its
// result alone).
int64_t block_activations(const Config& config, const std::string& kind) {
  const Sizes sizes(config);
  const int64_t inner = config.model.activation == "relu" ? 1 : 2;
  return 4 * sizes.stream + attention_graph(sizes, kind) + inner * sizes.inner;
}

int64_t feed_forward_activations(const Config& config) {
  const Sizes sizes(config);
  const int64_t inner = config.model.activation == "relu" ? 1 : 2;
  return sizes.stream + inner * sizes.inner;
}

int64_t optimizer_bytes(const Config& config, const ParameterCounts& counts) {
  if (config.train.optimizer != "adafactor") return 2 * counts.total() * kFloat;
  // A row and a column of each matrix, all of each vector: small, so an upper
  // bound will do.
  const auto& model = config.model;
  const int64_t width = model.heads * head_size(model);
  const int64_t layer =
      4 * (model.d_model + width) + 3 * model.d_ff + 8 * model.d_model;
  int64_t numbers =
      model.layers * layer + 3 * model.vocabulary + 8 * model.d_model;
  if (model.positions == "learned") numbers += config.train.length;
  for (const int64_t length : model.axial_shape) numbers += length;
  return numbers * kFloat;
}

// The moments of a step at which some part works hardest.
class Moments {
 public:
  explicit Moments(const Config& config)
      : config_(config),
        sizes_(config),
        kinds_(layer_attentions(config.model)),
        counts_(count_parameters(config)) {
    base_.parameters = counts_.total() * kFloat;
    base_.optimizer_state = optimizer_bytes(config, counts_);
  }

  MemoryPrediction highest() {
    MemoryPrediction highest = loss();
    const auto consider = [&](const MemoryPrediction& moment) {
      if (moment.total() > highest.total()) highest = moment;
    };
    for (int64_t layer = 0; layer < config_.model.layers; ++layer) {
      consider(feed_forward(layer));
      consider(attention(layer));
    }
    consider(embedding());
    return highest;
  }

 private:
  // When layers above `layer` are done with: backward goes from the last to
  // the first.
  MemoryPrediction moment(int64_t layer, const std::string& part,
                          int64_t working) const {
    MemoryPrediction moment = base_;
    moment.gradients = gradients_from(layer);
    moment.streams = 4 * sizes_.stream + 17 * sizes_.tokens;
    for (int64_t i = 0; i <= layer && i < config_.model.layers; ++i) {
      moment.bucket_ids += bucket_ids(kinds_[i]);
      if (keeps_activations(config_)) {
        moment.activations += block_activations(config_, kinds_[i]);
      }
    }
    moment.part = part;
    moment.working = working;
    return moment;
  }

  MemoryPrediction loss() const {
    return moment(config_.model.layers, "loss", loss_working(config_));
  }

  MemoryPrediction feed_forward(int64_t layer) const {
    return moment(layer, "feed-forward", feed_forward_working(config_));
  }

  MemoryPrediction attention(int64_t layer) const {
    auto attention =
        moment(layer, "attention", attention_working(config_, kinds_[layer]));
    if (keeps_activations(config_)) {  // its graph is among them
      attention.activations -= feed_forward_activations(config_);
      attention.working -=
          sizes_.stream + attention_graph(sizes_, kinds_[layer]);
    }
    return attention;
  }

  // The gradient of the input, summed, and the embedded input once more.
  MemoryPrediction embedding() const {
    auto embedding = moment(-1, "embedding", 2 * sizes_.stream);
    embedding.streams -= 2 * sizes_.stream;
    return embedding;
  }

  int64_t gradients_from(int64_t layer) const {
    if (layer < 0 || config_.train.accumulate > 1) {
      return counts_.total() * kFloat;
    }
    const int64_t layers = config_.model.layers;
    const int64_t done = std::max<int64_t>(layers - layer, 0);
    return (counts_.head +
            (counts_.attention + counts_.feed_forward) * done / layers) *
           kFloat;
  }

  int64_t bucket_ids(const std::string& kind) const {
    if (kind != "lsh") return 0;
    return int64_t{sizeof(uint16_t)} * config_.lsh.rounds * sizes_.head_rows;
  }

  const Config& config_;
  const Sizes sizes_;
  const std::vector<std::string> kinds_;
  const ParameterCounts counts_;
  MemoryPrediction base_;
};

}  // namespace

PeakPrediction predict_memory(const Config& config) {
  PeakPrediction prediction;
  prediction.peak = Moments(config).highest();
  for (const auto& kind : layer_attentions(config.model)) {
    prediction.attention =
        std::max(prediction.attention, attention_working(config, kind));
  }
  prediction.feed_forward = feed_forward_working(config);
  prediction.loss = loss_working(config);
  return prediction;
}

}  // namespace reformer
