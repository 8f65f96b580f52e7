#include "reformer/model/memory_parts.h"

#include "reformer/base/parallel.h"
#include "reformer/model/feed_forward.h"
#include "reformer/model/language_head.h"
#include "reformer/model/language_model.h"
#include "reformer/model/prediction.h"
#include "reformer/ops/interval_attention.h"

namespace reformer {
namespace {

int64_t chunk_tokens(const Config& config, int64_t chunk) {
  return std::min(chunk, config.train.length) * batch_rows(config);
}

// Kept by the attention's graph besides its normed input.
int64_t attention_graph(const Config& config, const TensorSizes& sizes,
                        AttentionKind kind) {
  const int64_t tensors = has_own_keys(kind) ? 4 : 3;  // qk, v, output (and k)
  const int64_t keys = has_own_keys(kind) ? 2 : 1;     // qk, or q and k
  const int64_t turned = rotary_pairs(config.model) > 0 ? keys : 0;
  // qk, v (and k) as they were projected; of what is turned its convolution is
  // not kept.
  const int64_t convolved =
      convolution_taps(config.model) > 0 ? tensors - 1 - turned : 0;
  const int64_t statistics = sizes.device == at::kCPU ? 1 : 3;  // of a row
  return (tensors + turned + convolved) * sizes.heads +
         statistics * sizes.head_rows * kFloatBytes;
}

int64_t round_count(const Config& config, AttentionKind kind) {
  if (kind != AttentionKind::kLsh) return 0;
  return bucket_rounds(config.lsh) +
         (local_window_of_hashed(config) > 0 ? 1 : 0);
}

// Order, place and interval of each round.
int64_t sorted_rounds(const Config& config, const TensorSizes& sizes,
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
int64_t query_gradient_sums(const Config& config, const TensorSizes& sizes) {
  constexpr int64_t kMultiprocessors = 132;  // of an H100 or H200
  const int64_t rows = batch_rows(config) * own_heads(config);
  const bool in_parts =
      config.train.deterministic && sizes.compute != kFloatBytes;
  const int64_t parts =
      in_parts ? (kMultiprocessors + rows - 1) / rows : int64_t{1};
  return parts * sizes.heads / sizes.compute * kFloatBytes;
}

// Of a GPU's kernels: statistics of rows, and fp32 sums of those heads whose
// rounds are computed together.
int64_t device_scratch(const Config& config, const TensorSizes& sizes,
                       AttentionKind kind, bool rounds) {
  if (kind == AttentionKind::kFull) return query_gradient_sums(config, sizes);
  const int64_t length = whole_length(config);
  const int64_t heads = std::min((kernels::kRowsTogether + length - 1) / length,
                                 batch_rows(config) * own_heads(config));
  const int64_t padded = (head_size(config.model) + 31) / 32 * 32;
  return (3 * sizes.head_rows + (rounds ? 2 * heads * length * padded : 0)) *
         kFloatBytes;
}

// When a reversible block's attention has its gradients: those of projections;
// the normed input, made again, and its gradient. Later, without the first,
// that of the stream, which a GPU's kernel adds as it writes.
int64_t projections_working(const TensorSizes& sizes, int64_t projections) {
  const int64_t last = sizes.device == at::kCPU ? sizes.stream : 0;
  return 2 * sizes.normed + std::max(projections * sizes.heads, last);
}

}  // namespace

int64_t whole_length(const Config& config) {
  return config.train.length * config.train.sequence_parallel;
}

int64_t own_heads(const Config& config) {
  const int64_t ranks = config.train.sequence_parallel;
  return (config.model.heads + ranks - 1) / ranks;
}

int64_t compute_bytes(const Config& config, at::DeviceType device) {
  return device != at::kCPU && config.train.precision != Precision::kFloat32
             ? 2
             : kFloatBytes;
}

TensorSizes::TensorSizes(const Config& config, at::DeviceType on)
    : device(on),
      compute(compute_bytes(config, on)),
      tokens(batch_rows(config) * config.train.length),
      all_tokens(batch_rows(config) * whole_length(config)),
      stream(tokens * config.model.d_model * kFloatBytes),
      normed(tokens * config.model.d_model * compute),
      heads(all_tokens * own_heads(config) * head_size(config.model) * compute),
      head_rows(all_tokens * own_heads(config)),
      hashed_rows(all_tokens *
                  std::min(hashed_heads(config), own_heads(config))),
      inner(tokens * config.model.d_ff * compute) {}

bool keeps_activations(const Config& config) {
  return config.model.block != BlockKind::kReversible;
}

int64_t attention_working(const Config& config, AttentionKind kind,
                          at::DeviceType device) {
  const TensorSizes sizes(config, device);
  const int64_t gradients = has_own_keys(kind) ? 4 : 3;
  int64_t bytes = (keeps_activations(config) ? sizes.normed : 0) +
                  attention_graph(config, sizes, kind) +
                  gradients * sizes.heads + sorted_rounds(config, sizes, kind);
  if (device == at::kCPU) {
    bytes += sizes.head_rows * kFloatBytes + threads() * thread_scratch(kind);
  } else {
    bytes += device_scratch(config, sizes, kind, round_count(config, kind) > 1);
  }
  if (keeps_activations(config)) return bytes;
  return std::max(bytes, projections_working(sizes, gradients - 1));
}

int64_t attention_activations(const Config& config, AttentionKind kind,
                              at::DeviceType device) {
  const TensorSizes sizes(config, device);
  return sizes.stream + sizes.normed + attention_graph(config, sizes, kind) +
         (device == at::kCPU ? 0 : sorted_rounds(config, sizes, kind));
}

int64_t feed_forward_tokens(const Config& config, at::DeviceType device) {
  return chunk_tokens(
      config, feed_forward_chunk(config.model, batch_rows(config), device,
                                 config.train.sequence_parallel));
}

int64_t feed_forward_working(const Config& config, at::DeviceType device) {
  const TensorSizes sizes(config, device);
  const auto& model = config.model;
  return feed_forward_tokens(config, device) *
             (2 * model.d_ff + 3 * model.d_model) * sizes.compute +
         sizes.rounded(2 * model.d_ff * model.d_model);
}

int64_t kept_inner(const ModelConfig& model) {
  return model.activation == ActivationKind::kRelu ||
                 model.activation == ActivationKind::kReluSquared
             ? 1
             : 2;
}

int64_t feed_forward_activations(const Config& config, at::DeviceType device) {
  const TensorSizes sizes(config, device);
  return sizes.stream + sizes.normed + kept_inner(config.model) * sizes.inner;
}

LossWorking loss_working(const Config& config, at::DeviceType device) {
  const auto& model = config.model;
  // An encoder-decoder's head takes all rows as one.
  const bool one_row = model.encoder_layers > 0;
  const int64_t rows = one_row ? 1 : batch_rows(config);
  const int64_t length =
      config.train.length * (one_row ? batch_rows(config) : 1);
  const int64_t chunk =
      loss_chunk(model, rows, device, config.train.sequence_parallel);
  const int64_t tokens = std::min(chunk, length) * rows;
  const int64_t compute = compute_bytes(config, device);
  const bool joined =
      model.block != BlockKind::kResidual;  // or the stream itself
  const int64_t read = model.d_model * (joined && !one_row ? 2 : 1);
  const int64_t kept = (joined ? read * kFloatBytes : 0) + read * compute;
  const bool one_part = chunk >= length && config.train.accumulate == 1;
  const int64_t wide = tokens * (2 * model.vocabulary * kFloatBytes + kept);
  const int64_t rounded = compute == kFloatBytes ? 0 : compute;
  const int64_t narrow = tokens * (model.vocabulary * (kFloatBytes + rounded) +
                                   kept + read * compute + read * kFloatBytes) +
                         (one_part ? 0 : model.vocabulary * read * kFloatBytes);
  return {wide, narrow, one_part};
}

int64_t optimizer_bytes(const Config& config, int64_t others, int64_t blocks) {
  const OptimizerKind kind = config.train.optimizer;
  if (kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamw) {
    return 2 * (others + blocks) * kFloatBytes;
  }
  // Almost everything in blocks is a matrix.
  if (kind == OptimizerKind::kMuon) return (2 * others + blocks) * kFloatBytes;
  // A row and a column of each matrix, all of each vector: small, so an upper
  // bound will do.
  const auto& model = config.model;
  const int64_t width = model.heads * head_size(model);
  const int64_t layer = 4 * (model.d_model + width) + 3 * model.d_ff +
                        8 * model.d_model + 3 * convolution_taps(model) * width;
  const int64_t cross =
      model.encoder_layers > 0 ? 4 * (model.d_model + width + 1) : 0;
  const int64_t layers = model.layers + model.encoder_layers;
  int64_t positions = 0;
  if (model.positions == PositionKind::kLearned) {
    positions = whole_length(config);
  }
  for (const int64_t length : model.axial_shape) positions += length;
  const int64_t elements =
      layers * (layer + cross) + 4 * model.vocabulary + 10 * model.d_model +
      (model.encoder_layers > 0 ? 2 : 1) * positions +
      ngram_tables(model) * (model.ngram_rows + model.d_model);
  return elements * kFloatBytes;
}

}  // namespace reformer
