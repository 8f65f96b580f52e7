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

int64_t projections_of(AttentionKind kind) {
  return kind == AttentionKind::kFull
             ? 4
             : 3;  // q, k, v, output; shared: one for q and k
}

// The mean over queries i of min(i * share, most): so many of the earlier
// positions are of the query's bucket, and so many its window holds.
double mean_of_window(double length, double share, double most) {
  const double full_from = most / share;  // the first query with a full window
  if (full_from >= length) return length * share / 2;
  return most - most * full_from / (2 * length);
}

double window_keys(const LshConfig& lsh, double length, double share) {
  // Chunks: all of the previous one, half of one's own on average.
  const double reach = lsh.window == Window::kChunk ? 1.5 : 1.0;
  return mean_of_window(length, share, reach * double(lsh.chunk_length));
}

int64_t buckets_of(const Config& config) {
  return config.lsh.n_buckets != 0
             ? config.lsh.n_buckets
             : default_bucket_count(config.train.length,
                                    config.lsh.chunk_length);
}

// Of the heads of an LSH layer, how many hash.
double hashed_share(const Config& config) {
  return double(hashed_heads(config)) / double(config.model.heads);
}

// In the local window of a head.
double near_keys(const Config& config) {
  return mean_of_window(double(config.train.length), 1,
                        double(config.lsh.local_window));
}

// Of a head that hashes: a pair is found unless every round misses it.
double hashed_keys(const Config& config) {
  const double length = double(config.train.length);
  const double past = std::max(length / 2, 1.0);
  const double found =
      window_keys(config.lsh, length, 1.0 / double(buckets_of(config))) / past;
  double missed = std::pow(1 - std::min(found, 1.0), config.lsh.rounds);
  if (local_window_of_hashed(config) > 0) {
    missed *= 1 - std::min(near_keys(config) / past, 1.0);
  }
  return past * (1 - missed);
}

// The mean over the heads of an LSH layer.
double lsh_keys(const Config& config) {
  const double share = hashed_share(config);
  if (share == 1) return hashed_keys(config);
  return share * hashed_keys(config) + (1 - share) * near_keys(config);
}

struct LayerFlops {
  double products = 0;   // with parameters
  double attention = 0;  // scores and weighted values
  double hash = 0;
};

LayerFlops layer_flops(const Config& config, AttentionKind kind) {
  const auto& model = config.model;
  const double tokens = double(tokens_per_step(config));
  const double d_model = double(model.d_model);
  const double width = double(model.heads * head_size(model));
  LayerFlops flops;
  flops.products =
      2 * tokens * d_model *
      (double(projections_of(kind)) * width + 2 * double(model.d_ff));
  flops.attention =
      2 * tokens * width * 2 * expected_keys_per_query(config, kind);
  if (kind == AttentionKind::kLsh) {
    flops.hash = 2 * tokens * width * hashed_share(config) *
                 double(config.lsh.rounds) *
                 double(rotation_columns(buckets_of(config)));
  }
  return flops;
}

}  // namespace

int64_t tokens_per_step(const Config& config) {
  return config.train.batch * config.train.length * config.train.accumulate;
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

ParameterCounts count_parameters(const Config& config) {
  const auto& model = config.model;
  const int64_t d_model = model.d_model;
  const int64_t norm = 2 * d_model;
  const int64_t width = model.heads * head_size(model);
  const int64_t read = d_model * (model.block == BlockKind::kResidual ? 1 : 2);
  ParameterCounts counts;
  counts.embedding = (model.vocabulary + 1) * d_model;  // and a start token
  counts.ngrams = ngram_tables(model) * model.ngram_rows * d_model;
  counts.positions = position_count(config);
  for (const auto kind : layer_attentions(model)) {
    counts.attention += norm + projections_of(kind) * width * d_model;
    counts.feed_forward +=
        norm + 2 * d_model * model.d_ff + model.d_ff + d_model;
  }
  counts.head = 2 * read + model.vocabulary * (read + 1);
  return counts;
}

double expected_keys_per_query(const Config& config, AttentionKind kind) {
  const double length = double(config.train.length);
  if (kind == AttentionKind::kLsh) return lsh_keys(config);
  if (kind == AttentionKind::kLocal) return window_keys(config.lsh, length, 1);
  return length / 2;
}

FlopsPrediction predict_flops(const Config& config) {
  const auto& model = config.model;
  const double read =
      double(model.d_model * (model.block == BlockKind::kResidual ? 1 : 2));
  const double head =
      2 * double(tokens_per_step(config)) * read * double(model.vocabulary);
  FlopsPrediction flops;
  flops.forward = head;
  flops.backward = 2 * head;
  for (const auto kind : layer_attentions(model)) {
    const auto layer = layer_flops(config, kind);
    flops.forward += layer.products + layer.attention + layer.hash;
    // Of a product two gradients; of attention scores and weighted values, the
    // scores again and four gradients.
    flops.backward += 2 * layer.products + 2.5 * layer.attention;
    if (model.block == BlockKind::kReversible) {
      flops.recomputation += layer.products + layer.attention;
    }
  }
  return flops;
}

}  // namespace reformer
