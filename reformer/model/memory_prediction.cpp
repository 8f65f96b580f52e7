// Which tensors are alive when: the moments of a step, along the code of the
// stacks; what a part holds is in memory_parts.h.
#include <algorithm>
#include <string>
#include <vector>

#include "reformer/distributed/communicator.h"
#include "reformer/model/memory_parts.h"
#include "reformer/model/prediction.h"

namespace reformer {
namespace {

// Learned positions are all ranks'.
Config of_whole_length(Config config) {
  config.train.length = whole_length(config);
  return config;
}

// The moments of a step at which some part works hardest.
class Moments {
 public:
  Moments(const Config& config, at::DeviceType device)
      : config_(config),
        device_(device),
        sizes_(config, device),
        blocks_(planned_blocks(config.model)),
        counts_(count_parameters(of_whole_length(config))) {
    for (const auto& block : blocks_) {
      kept_.push_back(kept_with(block));
      in_first_.push_back(in_first_.back() + in_block(block));
    }
    base_.parameters = resident() * kFloatBytes;
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
                     17 * sizes_.all_tokens;
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
      feed_forward.working -= feed_forward_tokens(config_, device_) *
                              (kept_inner(model) * model.d_ff + model.d_model) *
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
    const int64_t table = rows * model.d_model * kFloatBytes;
    const int64_t working =
        device_ == at::kCPU
            ? std::max(table, batch_sum + widest_axis())
            : std::max(sizes_.stream / 16 + 10 * sizes_.tokens,
                       batch_sum + (sizes_.stream / batch_rows(config_)) / 16);
    auto embedding = moment(-1, "embedding", working);
    embedding.streams = 2 * sizes_.stream + 17 * sizes_.all_tokens;
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
           kFloatBytes;
  }

  // Muon's: the two largest matrices of a block before and after an iteration,
  // and two matmuls of each with itself (on a GPU half of it).
  MemoryPrediction optimizer() const {
    const auto& model = config_.model;
    const int64_t least = std::min(model.d_model, model.d_ff);
    const int64_t pair = 2 * model.d_model * model.d_ff * kFloatBytes;
    MemoryPrediction optimizer = base_;
    optimizer.gradients = gradients_from(-1);
    optimizer.part = "optimizer";
    if (config_.train.optimizer != OptimizerKind::kMuon) return optimizer;
    optimizer.working = 2 * pair + 4 * least * least * kFloatBytes;
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
  int64_t resident() const {  // elements
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
    if (visiting()) return resident() * kFloatBytes;
    if (block < 0 || config_.train.accumulate > 1) {
      return counts_.total() * kFloatBytes;
    }
    const auto& model = config_.model;
    const bool in_encoder = block < model.encoder_layers;
    int64_t elements =
        counts_.head + in_first_.back() - in_first_[size_t(block)];
    if (in_encoder || model.share_embeddings) {
      elements += (model.vocabulary + 1) * model.d_model;
    }
    if (in_encoder) elements += counts_.positions / 2;
    return elements * kFloatBytes;
  }

  int64_t bucket_ids(AttentionKind kind) const {
    if (!hashes(kind)) return 0;
    return int64_t{sizeof(uint16_t)} * bucket_rounds(config_.lsh) *
           sizes_.hashed_rows;
  }

  const Config& config_;
  const at::DeviceType device_;
  const TensorSizes sizes_;
  const std::vector<PlannedBlock> blocks_;
  const ParameterCounts counts_;
  MemoryPrediction base_;
  std::vector<int64_t> in_first_ = {0};  // parameters, by how many blocks
  std::vector<Kept> kept_ = std::vector<Kept>(1);  // by how many blocks
};

// Of train.sequence_parallel ranks' part.
PeakPrediction predict_part(const Config& config, at::DeviceType device) {
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

}  // namespace

PeakPrediction predict_memory(const Config& config, at::DeviceType device) {
  Config alone = config;
  alone.train.sequence_parallel = 1;
  return predict_part(alone, device);
}

PeakPrediction predict_memory_of_rank(const Config& config,
                                      at::DeviceType device, int64_t ranks) {
  if (ranks == 1) return predict_memory(config, device);
  auto prediction = predict_part(part_of_rank(config, ranks), device);
  auto& peak = prediction.peak;
  if (config.train.shard_optimizer) peak.optimizer_state /= ranks;
  peak.working += Communicator::kept_bytes(device);
  return prediction;
}

}  // namespace reformer
