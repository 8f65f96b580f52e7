// Which tensors are alive when: a count along the code of the stacks, the head
// and the attentions. A part's function here names what that part holds.
#include <algorithm>
#include <vector>

#include "reformer/base/parallel.h"
#include "reformer/model/feed_forward.h"
#include "reformer/model/language_head.h"
#include "reformer/model/language_model.h"
#include "reformer/model/prediction.h"
#include "reformer/ops/interval_attention.h"

namespace reformer {
namespace {

constexpr int64_t kFloat = 4;

// Of a number in products and attention.
int64_t compute_bytes(const Config& config, at::DeviceType device) {
  return device != at::kCPU && config.train.precision != Precision::kFloat32
             ? 2
             : kFloat;
}

// Bytes of the tensors that a config is made of.
struct Sizes {
  Sizes(const Config& config, at::DeviceType on)
      : device(on),
        compute(compute_bytes(config, on)),
        tokens(batch_rows(config) * config.train.length),
        stream(tokens * config.model.d_model * kFloat),
        normed(tokens * config.model.d_model * compute),
        heads(tokens * config.model.heads * head_size(config.model) * compute),
        head_rows(tokens * config.model.heads),
        hashed_rows(tokens * hashed_heads(config)),
        inner(tokens * config.model.d_ff * compute) {}

  // A matrix of the parameters as products take it: a copy, if it is rounded.
  int64_t rounded(int64_t numbers) const {
    return compute == kFloat ? 0 : numbers * compute;
  }

  at::DeviceType device;
  int64_t compute;  // bytes of a number in products and attention
  int64_t tokens;
  int64_t stream;       // [tokens, d_model]
  int64_t normed;       // likewise, in the type of products
  int64_t heads;        // [tokens, heads * d_head]
  int64_t head_rows;    // tokens * heads, in rows
  int64_t hashed_rows;  // of heads that hash
  int64_t inner;        // [tokens, d_ff]
};

bool keeps_activations(const Config& config) {
  return config.model.block != BlockKind::kReversible;
}

int64_t chunk_tokens(const Config& config, int64_t chunk) {
  return std::min(chunk, config.train.length) * batch_rows(config);
}

// Kept by the attention's graph besides its normed input.
int64_t attention_graph(const Config& config, const Sizes& sizes,
                        AttentionKind kind) {
  const int64_t tensors = has_own_keys(kind) ? 4 : 3;  // qk, v, output (and k)
  const int64_t keys = has_own_keys(kind) ? 2 : 1;     // qk, or q and k
  const int64_t turned = rotary_pairs(config.model) > 0 ? keys : 0;
  const int64_t statistics = sizes.device == at::kCPU ? 1 : 3;  // of a row
  // What heads that hash and those that do not attended to, beside each other.
  const bool put_together =
      kind == AttentionKind::kLsh && sizes.hashed_rows < sizes.head_rows;
  return (tensors + turned + put_together) * sizes.heads +
         statistics * sizes.head_rows * kFloat;
}

int64_t round_count(const Config& config, AttentionKind kind) {
  if (kind != AttentionKind::kLsh) return 0;
  return bucket_rounds(config.lsh) +
         (local_window_of_hashed(config) > 0 ? 1 : 0);
}

// Order, place and interval of each round.
int64_t sorted_rounds(const Config& config, const Sizes& sizes,
                      AttentionKind kind) {
  return 4 * int64_t{sizeof(int32_t)} * round_count(config, kind) *
         sizes.hashed_rows;
}

// Of a thread: the ring of keys and its scores, or LibTorch's flash attention's
// tiles.
int64_t thread_scratch(AttentionKind kind) {
  return kind == AttentionKind::kFull ? 1 << 20 : 350 << 10;
}

// LibTorch's fp32 sums of dq: in a fixed order, and in bfloat16, one of each
// part of the keys, of which there are as many as fill the GPU.
int64_t query_gradient_sums(const Config& config, const Sizes& sizes) {
  constexpr int64_t kMultiprocessors = 132;  // of an H100 or H200
  const int64_t rows = batch_rows(config) * config.model.heads;
  const bool in_parts = config.train.deterministic && sizes.compute != kFloat;
  const int64_t parts =
      in_parts ? (kMultiprocessors + rows - 1) / rows : int64_t{1};
  return parts * sizes.heads / sizes.compute * kFloat;
}

// Of a GPU's kernels: statistics of rows, and fp32 sums of those heads whose
// rounds are computed together.
int64_t device_scratch(const Config& config, const Sizes& sizes,
                       AttentionKind kind, bool rounds) {
  if (kind == AttentionKind::kFull) return query_gradient_sums(config, sizes);
  const int64_t length = config.train.length;
  const int64_t heads = std::min((kernels::kRowsTogether + length - 1) / length,
                                 batch_rows(config) * config.model.heads);
  const int64_t padded = (head_size(config.model) + 31) / 32 * 32;
  return (3 * sizes.head_rows + (rounds ? 2 * heads * length * padded : 0)) *
         kFloat;
}

// When a reversible block's attention has its gradients: those of projections;
// the normed input, made again, and its gradient. Later, without the first,
// that of the stream, which a GPU's kernel adds as it writes.
int64_t projections_working(const Sizes& sizes, int64_t projections) {
  const int64_t last = sizes.device == at::kCPU ? sizes.stream : 0;
  return 2 * sizes.normed + std::max(projections * sizes.heads, last);
}

// At the attention's backward: its normed input, unless that is made again
// later; the graph, the gradients of its output, of qk and of v; the sorted
// rounds; scratch.
int64_t attention_working(const Config& config, AttentionKind kind,
                          at::DeviceType device) {
  const Sizes sizes(config, device);
  const int64_t gradients = has_own_keys(kind) ? 4 : 3;
  int64_t bytes = (keeps_activations(config) ? sizes.normed : 0) +
                  attention_graph(config, sizes, kind) +
                  gradients * sizes.heads + sorted_rounds(config, sizes, kind);
  if (device == at::kCPU) {
    bytes += sizes.head_rows * kFloat + threads() * thread_scratch(kind);
  } else {
    bytes += device_scratch(config, sizes, kind, round_count(config, kind) > 1);
  }
  if (keeps_activations(config)) return bytes;
  return std::max(bytes, projections_working(sizes, gradients - 1));
}

// Of a chunk in the feed-forward.
int64_t feed_forward_tokens(const Config& config, at::DeviceType device) {
  return chunk_tokens(
      config, feed_forward_chunk(config.model, batch_rows(config), device));
}

// Of [chunk, d_ff] what the activation saw and its result or gradient; the
// normed input, the output's gradient and the normed input's.
int64_t feed_forward_working(const Config& config, at::DeviceType device) {
  const Sizes sizes(config, device);
  const auto& model = config.model;
  return feed_forward_tokens(config, device) *
             (2 * model.d_ff + 3 * model.d_model) * sizes.compute +
         sizes.rounded(2 * model.d_ff * model.d_model);
}

// Logits and their log-probabilities, which become gradients; the joined
// streams, that normed, and the gradients of both; a gradient of the matrix
// that is added to one there is.
struct LossWorking {
  int64_t with_logits;     // before the first part's gradients
  int64_t with_gradients;  // when they are made
  bool one_part;

  int64_t most() const { return std::max(with_logits, with_gradients); }
};

LossWorking loss_working(const Config& config, at::DeviceType device) {
  const auto& model = config.model;
  // An encoder-decoder's head takes all rows as one.
  const bool one_row = model.encoder_layers > 0;
  const int64_t rows = one_row ? 1 : batch_rows(config);
  const int64_t length =
      config.train.length * (one_row ? batch_rows(config) : 1);
  const int64_t chunk = loss_chunk(model, rows, device);
  const int64_t tokens = std::min(chunk, length) * rows;
  const int64_t compute = compute_bytes(config, device);
  const bool joined =
      model.block != BlockKind::kResidual;  // or the stream itself
  const int64_t read = model.d_model * (joined && !one_row ? 2 : 1);
  const int64_t kept = (joined ? read * kFloat : 0) + read * compute;
  const bool one_part = chunk >= length && config.train.accumulate == 1;
  const int64_t wide = tokens * (2 * model.vocabulary * kFloat + kept);
  const int64_t rounded = compute == kFloat ? 0 : compute;
  const int64_t narrow = tokens * (model.vocabulary * (kFloat + rounded) +
                                   kept + read * compute + read * kFloat) +
                         (one_part ? 0 : model.vocabulary * read * kFloat);
  return {wide, narrow, one_part};
}

// Kept for a feed-forward's gradients: its input, that normed, and of
// [tokens, d_ff] what the activation saw and its result (relu: that alone).
int64_t feed_forward_activations(const Config& config, at::DeviceType device) {
  const Sizes sizes(config, device);
  const int64_t inner =
      config.model.activation == ActivationKind::kRelu ? 1 : 2;
  return sizes.stream + sizes.normed + inner * sizes.inner;
}

// Likewise for attention's; a CPU sorts the rounds again.
int64_t attention_activations(const Config& config, AttentionKind kind,
                              at::DeviceType device) {
  const Sizes sizes(config, device);
  return sizes.stream + sizes.normed + attention_graph(config, sizes, kind) +
         (device == at::kCPU ? 0 : sorted_rounds(config, sizes, kind));
}

// `blocks`: of the numbers in blocks, how many are there.
int64_t optimizer_bytes(const Config& config, int64_t others, int64_t blocks) {
  const OptimizerKind kind = config.train.optimizer;
  if (kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamw) {
    return 2 * (others + blocks) * kFloat;
  }
  // Almost everything in blocks is a matrix.
  if (kind == OptimizerKind::kMuon) return (2 * others + blocks) * kFloat;
  // A row and a column of each matrix, all of each vector: small, so an upper
  // bound will do.
  const auto& model = config.model;
  const int64_t width = model.heads * head_size(model);
  const int64_t layer =
      4 * (model.d_model + width) + 3 * model.d_ff + 8 * model.d_model;
  const int64_t cross =
      model.encoder_layers > 0 ? 4 * (model.d_model + width + 1) : 0;
  const int64_t layers = model.layers + model.encoder_layers;
  int64_t positions = 0;
  if (model.positions == PositionKind::kLearned) {
    positions = config.train.length;
  }
  for (const int64_t length : model.axial_shape) positions += length;
  const int64_t numbers =
      layers * (layer + cross) + 4 * model.vocabulary + 10 * model.d_model +
      (model.encoder_layers > 0 ? 2 : 1) * positions +
      ngram_tables(model) * (model.ngram_rows + model.d_model);
  return numbers * kFloat;
}

// The moments of a step at which some part works hardest.
class Moments {
 public:
  Moments(const Config& config, at::DeviceType device)
      : config_(config),
        device_(device),
        sizes_(config, device),
        blocks_(planned_blocks(config.model)),
        counts_(count_parameters(config)) {
    for (const auto& block : blocks_) {
      kept_.push_back(kept_with(block));
      in_first_.push_back(in_first_.back() + in_block(block));
    }
    base_.parameters = resident() * kFloat;
    base_.optimizer_state =
        optimizer_bytes(config, others(), resident() - others());
  }

  MemoryPrediction highest() {
    MemoryPrediction highest = loss();
    const auto consider = [&](const MemoryPrediction& moment) {
      if (moment.total() > highest.total()) highest = moment;
    };
    for (int64_t block = 0; block < count(); ++block) {
      consider(feed_forward(block));
      if (blocks_[size_t(block)].cross) consider(cross_attention(block));
      consider(attention(block));
    }
    consider(embedding());
    consider(optimizer());
    return highest;
  }

 private:
  // Of the first blocks, for backward.
  struct Kept {
    int64_t bucket_ids = 0;
    int64_t activations = 0;
  };

  int64_t count() const { return static_cast<int64_t>(blocks_.size()); }
  bool has_encoder() const { return config_.model.encoder_layers > 0; }

  int64_t cross_activations(const PlannedBlock& block) const {
    if (!block.cross) return 0;
    return attention_activations(config_, AttentionKind::kFull, device_);
  }

  // By one block more than kept_ has so far.
  Kept kept_with(const PlannedBlock& block) const {
    Kept kept = kept_.back();
    kept.bucket_ids += bucket_ids(block.attention);
    if (keeps_activations(config_)) {
      kept.activations +=
          attention_activations(config_, block.attention, device_) +
          cross_activations(block) + feed_forward_activations(config_, device_);
    }
    return kept;
  }

  // Of an encoder while the decoder works: its streams at the end, unless they
  // are among kept activations (the last sum is not), its output, the sum of
  // that's gradients, and the source.
  int64_t encoder_output() const {
    if (!has_encoder()) return 0;
    const int64_t streams = keeps_activations(config_) ? 1 : 2;
    return (streams + 1) * sizes_.stream + sizes_.normed + 9 * sizes_.tokens;
  }

  // When blocks above `block` are done with: backward goes from the last to
  // the first.
  MemoryPrediction moment(int64_t block, const std::string& part,
                          int64_t working) const {
    MemoryPrediction moment = base_;
    moment.gradients = gradients_from(block);
    // Kept activations have the streams among them.
    moment.streams = (keeps_activations(config_) ? 2 : 4) * sizes_.stream +
                     17 * sizes_.tokens;
    if (block >= config_.model.encoder_layers) {
      moment.streams += encoder_output();
    }
    const auto blocks = std::min(block + 1, count());
    moment.bucket_ids = kept_[size_t(blocks)].bucket_ids;
    moment.activations = kept_[size_t(blocks)].activations;
    moment.part = part;
    moment.working = working;
    return moment;
  }

  MemoryPrediction loss() const {
    const auto working = loss_working(config_, device_);
    auto loss = moment(count(), "loss", working.most());
    if (working.one_part) {  // no gradients yet while there are logits
      loss.working = std::max(working.with_logits - loss.gradients,
                              working.with_gradients);
    }
    if (!keeps_activations(config_)) return loss;
    // The last sum that nobody reads; the one before, where the parts that read
    // it have copies of it; the stream that a residual block does not use.
    const bool copies = config_.model.dropout > 0 && batch_rows(config_) > 1;
    const bool unused = config_.model.block == BlockKind::kResidual;
    loss.streams += (1 + copies + unused) * sizes_.stream;
    return loss;
  }

  MemoryPrediction feed_forward(int64_t block) const {
    auto feed_forward =
        moment(block, "feed-forward", feed_forward_working(config_, device_));
    if (keeps_activations(config_)) {  // the part's are among them
      const auto& model = config_.model;
      const int64_t inner = model.activation == ActivationKind::kRelu ? 1 : 2;
      feed_forward.working -= feed_forward_tokens(config_, device_) *
                              (inner * model.d_ff + model.d_model) *
                              sizes_.compute;
    }
    return feed_forward;
  }

  // `after`: kept for the branches of the block that come after it.
  MemoryPrediction attention_of(int64_t block, AttentionKind kind,
                                int64_t after) const {
    auto attention =
        moment(block, "attention", attention_working(config_, kind, device_));
    if (keeps_activations(config_)) {  // its own are among them
      attention.activations -= after;
      attention.working -=
          attention_activations(config_, kind, device_) - sizes_.stream;
    }
    return attention;
  }

  MemoryPrediction attention(int64_t block) const {
    const auto& planned = blocks_[size_t(block)];
    return attention_of(block, planned.attention,
                        cross_activations(planned) +
                            feed_forward_activations(config_, device_));
  }

  MemoryPrediction cross_attention(int64_t block) const {
    return attention_of(block, AttentionKind::kFull,
                        feed_forward_activations(config_, device_));
  }

  // Gradients alone are left of the streams, and their sum over the batch for
  // the positions. A CPU makes a table's gradient before it adds it, and copies
  // an axis' columns; a GPU sorts lookups and keeps sums of a sixteenth of
  // them.
  MemoryPrediction embedding() const {
    const auto& model = config_.model;
    const int64_t batch_sum = batch_rows(config_) > 1 && has_tables()
                                  ? sizes_.stream / batch_rows(config_)
                                  : 0;
    const int64_t rows =
        std::max(model.vocabulary + 1,
                 model.ngram_length > 0 ? model.ngram_rows : int64_t{0});
    const int64_t table = rows * model.d_model * kFloat;
    const int64_t working =
        device_ == at::kCPU
            ? std::max(table, batch_sum + widest_axis())
            : std::max(sizes_.stream / 16 + 10 * sizes_.tokens,
                       batch_sum + (sizes_.stream / batch_rows(config_)) / 16);
    auto embedding = moment(-1, "embedding", working);
    embedding.streams = 2 * sizes_.stream + 17 * sizes_.tokens;
    return embedding;
  }

  bool has_tables() const {
    const auto& positions = config_.model.positions;
    return positions == PositionKind::kLearned ||
           positions == PositionKind::kAxial;
  }

  // A column for each position.
  int64_t widest_axis() const {
    const auto& dims = config_.model.axial_dims;
    if (config_.model.positions != PositionKind::kAxial || dims.size() < 2)
      return 0;
    return *std::max_element(dims.begin(), dims.end()) * config_.train.length *
           kFloat;
  }

  // Muon's: the two largest matrices of a block before and after an iteration,
  // and two products of each with itself (on a GPU half of it).
  MemoryPrediction optimizer() const {
    const auto& model = config_.model;
    const int64_t least = std::min(model.d_model, model.d_ff);
    const int64_t pair = 2 * model.d_model * model.d_ff * kFloat;
    MemoryPrediction optimizer = base_;
    optimizer.gradients = gradients_from(-1);
    optimizer.part = "optimizer";
    if (config_.train.optimizer != OptimizerKind::kMuon) return optimizer;
    optimizer.working = 2 * pair + 4 * least * least * kFloat;
    return optimizer;
  }

  // With parameters on the host a GPU has those of three blocks at a time, each
  // in the place of the largest, with their gradients and optimizer state.
  bool visiting() const { return device_ != at::kCPU && config_.train.offload; }
  int64_t in_blocks() const { return counts_.attention + counts_.feed_forward; }
  int64_t others() const { return counts_.total() - in_blocks(); }
  int64_t in_block(const PlannedBlock& block) const {
    return count_parameters(config_.model, block).total();
  }
  int64_t resident() const {  // numbers
    if (!visiting()) return counts_.total();
    int64_t largest = 0;
    for (const auto& block : blocks_) {
      largest = std::max(largest, in_block(block));
    }
    return others() + largest * std::min<int64_t>(3, count());
  }

  // Of the head, of blocks from `block` on; of the decoder's embedding before
  // an encoder's blocks.
  int64_t gradients_from(int64_t block) const {
    if (visiting()) return resident() * kFloat;
    if (block < 0 || config_.train.accumulate > 1) {
      return counts_.total() * kFloat;
    }
    const auto& model = config_.model;
    const bool in_encoder = block < model.encoder_layers;
    int64_t numbers =
        counts_.head + in_first_.back() - in_first_[size_t(block)];
    if (in_encoder || model.share_embeddings) {
      numbers += (model.vocabulary + 1) * model.d_model;
    }
    if (in_encoder) numbers += counts_.positions / 2;
    return numbers * kFloat;
  }

  int64_t bucket_ids(AttentionKind kind) const {
    if (!hashes(kind)) return 0;
    return int64_t{sizeof(uint16_t)} * bucket_rounds(config_.lsh) *
           sizes_.hashed_rows;
  }

  const Config& config_;
  const at::DeviceType device_;
  const Sizes sizes_;
  const std::vector<PlannedBlock> blocks_;
  const ParameterCounts counts_;
  MemoryPrediction base_;
  std::vector<int64_t> in_first_ = {0};  // parameters, by how many blocks
  std::vector<Kept> kept_ = std::vector<Kept>(1);  // by how many blocks
};

}  // namespace

PeakPrediction predict_memory(const Config& config, at::DeviceType device) {
  PeakPrediction prediction;
  prediction.peak = Moments(config, device).highest();
  for (const auto& block : planned_blocks(config.model)) {
    const auto kind = block.cross ? AttentionKind::kFull : block.attention;
    for (const auto each : {block.attention, kind}) {
      prediction.attention = std::max(prediction.attention,
                                      attention_working(config, each, device));
    }
  }
  prediction.feed_forward = feed_forward_working(config, device);
  prediction.loss = loss_working(config, device).most();
  return prediction;
}

}  // namespace reformer
