#include "reformer/model/prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "reformer/config/bucket_count.h"

namespace reformer {
namespace {

int64_t position_count(const Config& config) {
  const auto& model = config.model;
  if (model.positions == PositionKind::kLearned)
    return config.train.length * model.d_model;
  if (model.positions != PositionKind::kAxial) return 0;
  return std::inner_product(model.axial_shape.begin(), model.axial_shape.end(),
                            model.axial_dims.begin(), int64_t{0});
}

constexpr int64_t kSeparateProjections = 4;  // q, k, v, output

int64_t projections_of(AttentionKind kind) {
  return has_own_keys(kind) ? kSeparateProjections
                            : kSeparateProjections - 1;  // one for q and k
}

// The mean over queries i of min(i * share, most): so many of the earlier
// positions are of the query's bucket, and so many its window holds.
double mean_of_window(double length, double share, double most) {
  const double full_from = most / share;  // the first query with a full window
  if (full_from >= length) return length * share / 2;
  return most - most * full_from / (2 * length);
}

double window_keys(const LshConfig& lsh, double length, double share,
                   bool causal) {
  const double chunk = double(lsh.chunk_length);
  // One's own chunk and the previous one, or as many on either side.
  if (!causal) return std::min(length * share, 2 * chunk);
  // Chunks: all of the previous one, half of one's own on average.
  const double reach = lsh.window == Window::kChunk ? 1.5 : 1.0;
  return mean_of_window(length, share, reach * chunk);
}

int64_t buckets_of(const Config& config) {
  return config.lsh.n_buckets != 0
             ? config.lsh.n_buckets
             : default_bucket_count(config.train.length,
                                    config.lsh.chunk_length);
}

// Of the heads of an LSH layer, how many hash: of the encoder's all.
double hashed_share(const Config& config, bool causal) {
  return causal ? double(hashed_heads(config)) / double(config.model.heads) : 1;
}

// In the local window of a head.
double near_keys(const Config& config, bool causal) {
  const double length = double(config.train.length);
  const double window = double(config.lsh.local_window);
  return causal ? mean_of_window(length, 1, window)
                : std::min(length, 2 * window);
}

// Of a head that hashes: a pair is found unless every round misses it.
double hashed_keys(const Config& config, bool causal) {
  const double length = double(config.train.length);
  const double all = causal ? std::max(length / 2, 1.0) : length;
  const double share = 1.0 / double(buckets_of(config));
  const double found = window_keys(config.lsh, length, share, causal) / all;
  double missed =
      std::pow(1 - std::min(found, 1.0), double(bucket_rounds(config.lsh)));
  const int64_t window =
      causal ? local_window_of_hashed(config) : config.lsh.local_window;
  if (window > 0) {
    missed *= 1 - std::min(near_keys(config, causal) / all, 1.0);
  }
  return all * (1 - missed);
}

// The mean over the heads of an LSH layer.
double lsh_keys(const Config& config, bool causal) {
  const double share = hashed_share(config, causal);
  if (share == 1) return hashed_keys(config, causal);
  return share * hashed_keys(config, causal) +
         (1 - share) * near_keys(config, causal);
}

struct LayerFlops {
  double matmuls = 0;    // with parameters
  double attention = 0;  // scores and weighted values
  double hash = 0;
};

// Tokens of the target, or of the source, which are as many.
double tokens_of_one(const Config& config) {
  return double(batch_rows(config) * config.train.length) *
         double(config.train.accumulate);
}

LayerFlops layer_flops(const Config& config, const PlannedBlock& block) {
  const auto& model = config.model;
  const double tokens = tokens_of_one(config);
  const double d_model = double(model.d_model);
  const double width = double(model.heads * head_size(model));
  const auto projections = double(projections_of(block.attention) +
                                  (block.cross ? kSeparateProjections : 0));
  const double keys =
      expected_keys_per_query(config, block.attention, !block.encoder) +
      (block.cross ? double(config.train.length) : 0);
  LayerFlops flops;
  flops.matmuls =
      2 * tokens * d_model * (projections * width + 2 * double(model.d_ff));
  flops.attention = 2 * tokens * width * 2 * keys;
  if (block.attention == AttentionKind::kLshHuggingface) {
    const auto& factors = model.bucket_factors;
    flops.hash = tokens * width * double(config.lsh.rounds) *
                 std::accumulate(factors.begin(), factors.end(), 0.0);
  }
  if (block.attention == AttentionKind::kLsh) {
    flops.hash = 2 * tokens * width * hashed_share(config, !block.encoder) *
                 double(config.lsh.rounds) *
                 double(rotation_columns(buckets_of(config)));
  }
  return flops;
}

// What the head reads of the streams.
int64_t read_width(const ModelConfig& model) {
  const bool joined = model.block != BlockKind::kResidual;
  return model.d_model * (joined && model.encoder_layers == 0 ? 2 : 1);
}

}  // namespace

int64_t batch_rows(const Config& config) {
  const auto& train = config.train;
  if (config.model.encoder_layers == 0 || train.batch_tokens == 0) {
    return train.batch;
  }
  return std::max<int64_t>(1, train.batch_tokens / (2 * train.length));
}

Config part_of_rank(const Config& config, int64_t ranks) {
  Config part = config;
  const int64_t groups = ranks / config.train.sequence_parallel;
  part.train.batch = (config.train.batch + groups - 1) / groups;
  part.train.batch_tokens /= groups;
  part.train.length /= config.train.sequence_parallel;
  return part;
}

int64_t tokens_per_step(const Config& config) {
  const int64_t sequences = config.model.encoder_layers > 0 ? 2 : 1;
  return sequences * batch_rows(config) * config.train.length *
         config.train.accumulate;
}

int64_t longest_input(const Config& config) {
  if (config.model.positions == PositionKind::kLearned)
    return config.train.length;
  if (config.model.positions != PositionKind::kAxial) return 0;
  int64_t longest = 1;
  for (const int64_t length : config.model.axial_shape) {
    if (__builtin_mul_overflow(longest, length, &longest)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return longest;
}

std::vector<PlannedBlock> planned_blocks(const ModelConfig& model) {
  std::vector<PlannedBlock> blocks;
  for (const auto kind : encoder_attentions(model)) {
    blocks.push_back({kind, /*encoder=*/true, /*cross=*/false});
  }
  for (const auto kind : layer_attentions(model)) {
    blocks.push_back({kind, /*encoder=*/false, model.encoder_layers > 0});
  }
  return blocks;
}

ParameterCounts count_parameters(const ModelConfig& model,
                                 const PlannedBlock& block) {
  const int64_t d_model = model.d_model;
  const int64_t norm = 2 * d_model;
  const int64_t width = model.heads * head_size(model);
  ParameterCounts counts;
  const int64_t projections = projections_of(block.attention);
  counts.attention = norm + projections * width * d_model +
                     (projections - 1) * convolution_taps(model) * width;
  if (block.cross) {
    counts.attention += norm + kSeparateProjections * width * d_model;
  }
  counts.feed_forward = norm + 2 * d_model * model.d_ff + model.d_ff + d_model;
  return counts;
}

ParameterCounts count_parameters(const Config& config) {
  const auto& model = config.model;
  const bool encoder = model.encoder_layers > 0;
  const int64_t read = read_width(model);
  ParameterCounts counts;
  counts.embedding = (model.vocabulary + 1) * model.d_model;  // and a start
  if (encoder && !model.share_embeddings) {
    counts.embedding += model.vocabulary * model.d_model;
  }
  counts.ngrams = ngram_tables(model) * model.ngram_rows * model.d_model;
  counts.positions = position_count(config) * (encoder ? 2 : 1);
  for (const auto& block : planned_blocks(model)) {
    const auto of_block = count_parameters(model, block);
    counts.attention += of_block.attention;
    counts.feed_forward += of_block.feed_forward;
  }
  const int64_t matrix = model.share_embeddings ? 0 : read;
  counts.head = 2 * read + model.vocabulary * (matrix + 1) +
                (encoder ? 2 * model.d_model : 0);
  return counts;
}

double expected_keys_per_query(const Config& config, AttentionKind kind,
                               bool causal) {
  const double length = double(config.train.length);
  if (kind == AttentionKind::kLsh) return lsh_keys(config, causal);
  if (is_local(kind)) {
    auto window = config.lsh;
    window.chunk_length = local_chunk_length(config);
    return window_keys(window, length, 1, causal);
  }
  if (kind == AttentionKind::kLshHuggingface) {
    const double window = 2.0 * double(config.lsh.chunk_length);
    return std::min(window, length) * double(config.lsh.rounds);
  }
  return causal ? length / 2 : length;
}

double mean_keys_per_query(const Config& config) {
  double sum = 0;
  int64_t attentions = 0;
  for (const auto& block : planned_blocks(config.model)) {
    sum += expected_keys_per_query(config, block.attention, !block.encoder);
    ++attentions;
    if (!block.cross) continue;
    sum += double(config.train.length);
    ++attentions;
  }
  return sum / double(attentions);
}

FlopsPrediction predict_flops(const Config& config) {
  const auto& model = config.model;
  const double head = 2 * tokens_of_one(config) * double(read_width(model)) *
                      double(model.vocabulary);
  FlopsPrediction flops;
  flops.forward = head;
  flops.backward = 2 * head;
  for (const auto& block : planned_blocks(model)) {
    const auto layer = layer_flops(config, block);
    flops.forward += layer.matmuls + layer.attention + layer.hash;
    // Of a product two gradients; of attention scores and weighted values, the
    // scores again and four gradients.
    flops.backward += 2 * layer.matmuls + 2.5 * layer.attention;
    if (model.block == BlockKind::kReversible) {
      flops.recomputation += layer.matmuls + layer.attention;
    }
  }
  return flops;
}

}  // namespace reformer
