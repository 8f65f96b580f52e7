#include "reformer/base/errors.h"
#include "reformer/config/bucket_count.h"
#include "reformer/config/check_config.h"
#include "reformer/config/convolution_limits.h"
#include "reformer/config/head_sizes.h"
#include "reformer/config/ngram_limits.h"
#include "reformer/config/setting_limits.h"

namespace reformer {
namespace {

constexpr int64_t kMostLayers = 1 << 20;
constexpr int64_t kWidestConvolution = kMostConvolutionTaps + 1;

void check_heads(const ModelConfig& model) {
  if (model.d_head == 0) {
    require(model.d_model % model.heads == 0,
            "model.heads: a divisor of model.d_model = ", model.d_model,
            " is required where model.d_head is 0, got ", model.heads);
    const int64_t size = head_size(model);
    require(size >= kMinHeadSize && size <= kMaxHeadSize,
            "model.d_head: model.d_model / model.heads from ", kMinHeadSize,
            " to ", kMaxHeadSize, " is required, got ", model.d_model, " / ",
            model.heads, " = ", size);
  } else {
    require_within("model.d_head", model.d_head, kMinHeadSize, kMaxHeadSize);
  }
}

void check_ngrams(const ModelConfig& model) {
  require(model.ngram_length == 0 ||
              (model.ngram_length >= 2 && model.ngram_length <= kLongestNgram),
          "model.ngram_length: 0, or from 2 to ", kLongestNgram,
          " is required, got ", model.ngram_length);
  require_within("model.ngram_rows", model.ngram_rows, 1, kMostNgramRows);
  require(model.ngram_length == 0 || model.encoder_layers == 0,
          "model.ngram_length: 0 is required where model.encoder_layers is not "
          "0, got ",
          model.ngram_length);
}

void check_short_convolution(const ModelConfig& model) {
  const int64_t width = model.short_convolution;
  require(width == 0 || (width >= 2 && width <= kWidestConvolution),
          "model.short_convolution: 0, or from 2 to ", kWidestConvolution,
          " is required, got ", width);
  if (width == 0) return;
  require(model.encoder_layers == 0,
          "model.short_convolution: 0 is required where model.encoder_layers "
          "is not 0, got ",
          width);
  for (const auto kind :
       {AttentionKind::kLocalSeparateQk, AttentionKind::kLshHuggingface}) {
    require(!model.attention.contains(kind),
            "model.short_convolution: 0 is required by ", name_of(kind),
            " attention, got ", width);
  }
}

void check_model_sizes(const ModelConfig& model) {
  require_within("model.layers", model.layers, 1, kMostLayers);
  require_within("model.encoder_layers", model.encoder_layers, 0, kMostLayers);
  require_within("model.d_model", model.d_model, 1);
  require_within("model.d_ff", model.d_ff, 1);
  require_within("model.heads", model.heads, 1);
  require_within("model.vocabulary", model.vocabulary, 2);
  require_within("model.feed_forward_chunk", model.feed_forward_chunk, 0);
  require_within("model.loss_chunk", model.loss_chunk, 0);
  require_within("model.local_chunk_length", model.local_chunk_length, 0);
  require_positive("model.norm_epsilon", model.norm_epsilon);
  require_below_one("model.dropout", model.dropout);
  require_fraction("model.successor_fraction", model.successor_fraction);
  const int64_t successors = successor_heads(model);
  require(successors > 0 || model.successor_fraction == 0,
          "model.successor_fraction: ", model.successor_fraction, " of ",
          model.heads, " heads is none; at least ", 1.0 / double(model.heads),
          " is required, or 0");
  require(successors < model.heads || model.positions != PositionKind::kRotary,
          "model.successor_fraction: ", model.successor_fraction,
          " leaves no head that rotary positions could turn; at most ",
          double(model.heads - 1) / double(model.heads), " is required");
  require(model.attention.count() <= model.layers,
          "model.attention: at most model.layers = ", model.layers,
          " names are required, got ", model.attention.count());
  if (model.encoder_layers > 0) {
    require(model.encoder_attention.count() <= model.encoder_layers,
            "model.encoder_attention: at most model.encoder_layers = ",
            model.encoder_layers, " names are required, got ",
            model.encoder_attention.count());
  } else {
    require(!model.share_embeddings,
            "model.share_embeddings: false is required where "
            "model.encoder_layers is 0, got true");
  }
  check_heads(model);
  check_ngrams(model);
  check_short_convolution(model);
}

// Their hash, whose ids take two bytes as ours do.
void check_huggingface(const Config& config) {
  const auto& model = config.model;
  for (const auto kind :
       {AttentionKind::kLocalSeparateQk, AttentionKind::kLshHuggingface}) {
    require(
        model.encoder_layers == 0 || (!model.attention.contains(kind) &&
                                      !model.encoder_attention.contains(kind)),
        "model.attention: ", Choice<AttentionKind>(kind),
        " is of language models alone, and model.encoder_layers is ",
        model.encoder_layers);
  }
  if (!model.attention.contains(AttentionKind::kLshHuggingface)) {
    require(model.bucket_factors.empty(),
            "model.bucket_factors: none are required where model.attention "
            "has no lsh_huggingface");
    return;
  }
  require(!model.bucket_factors.empty(),
          "model.bucket_factors: required where model.attention has "
          "lsh_huggingface, got none");
  for (const int64_t factor : model.bucket_factors) {
    require(factor >= 2 && factor % 2 == 0 && factor <= kMaxBuckets,
            "model.bucket_factors: even numbers from 2 to ", kMaxBuckets,
            " are required, got ", factor);
  }
  require(product_up_to(kMaxBuckets + 1, model.bucket_factors) <= kMaxBuckets,
          "model.bucket_factors: a product of at most ", kMaxBuckets,
          " is required, got more");
  require(
      model.successor_fraction == 0 && config.lsh.local_window == 0 &&
          config.lsh.ngrams.empty() &&
          config.lsh.hashed_heads == HashedHeads::kAll &&
          config.lsh.more_rounds == MoreRounds::kUnion,
      "model.attention: lsh_huggingface has neither successor values nor a "
      "local window nor n-grams nor groups of rounds; model.successor_fraction "
      "and lsh.local_window of 0, lsh.hashed_heads of all, no lsh.ngrams and "
      "lsh.more_rounds of union are required");
}

// Every head hashes or has a local window.
void check_lsh_heads(const Config& config) {
  const auto& lsh = config.lsh;
  const int64_t successors = successor_heads(config.model);
  const bool some = successors > 0 && successors < config.model.heads;
  require(
      lsh.hashed_heads == HashedHeads::kAll || (some && lsh.local_window > 0),
      "lsh.hashed_heads: successor takes some heads with successor values, "
      "some without, and a local window for these; model.heads is ",
      config.model.heads, ", model.successor_fraction ",
      config.model.successor_fraction, ", lsh.local_window ", lsh.local_window);
  require(lsh.local_heads == LocalHeads::kAll ||
              lsh.hashed_heads == HashedHeads::kSuccessor,
          "lsh.local_heads: other takes lsh.hashed_heads = successor, which is "
          "all");
  require(lsh.ngrams.empty() || config.model.encoder_layers == 0,
          "lsh.ngrams: none are possible where model.encoder_layers is not 0, "
          "got ",
          lsh.ngrams.size());
  require(lsh.more_rounds == MoreRounds::kUnion ||
              (lsh.ngrams.empty() && config.model.encoder_layers == 0),
          "lsh.more_rounds: union is required where there are lsh.ngrams, and "
          "by an encoder-decoder; got groups");
}

void check_lsh(const LshConfig& lsh) {
  require_within("lsh.rounds", lsh.rounds, 1);
  for (const int64_t n : lsh.ngrams) {
    require_within("lsh.ngrams", n, 2, kLongestNgram);
  }
  require_within("lsh.chunk_length", lsh.chunk_length, 1);
  require_within("lsh.local_window", lsh.local_window, 0);
  if (lsh.n_buckets != 0) require_bucket_count("lsh.n_buckets", lsh.n_buckets);
  require(lsh.causal,
          "lsh.causal: true is required, a language model predicts from the "
          "past; got false");
}

}  // namespace

void check_axial(const ModelConfig& model, int64_t length) {
  require(!model.axial_shape.empty(),
          "model.axial_shape: the axes' lengths are required where "
          "model.positions is axial, got none");
  require(model.axial_dims.size() == model.axial_shape.size(),
          "model.axial_dims: as many axes as model.axial_shape has, ",
          model.axial_shape.size(), ", are required, got ",
          model.axial_dims.size());
  int64_t width = 0;
  for (size_t axis = 0; axis < model.axial_shape.size(); ++axis) {
    require_within("model.axial_shape", model.axial_shape[axis], 1);
    require_within("model.axial_dims", model.axial_dims[axis], 1);
    width += model.axial_dims[axis];
  }
  require(width == model.d_model,
          "model.axial_dims: a sum of model.d_model = ", model.d_model,
          " is required, got ", width);
  const int64_t positions = product_up_to(length, model.axial_shape);
  require(positions >= length,
          "model.axial_shape: a product of at least train.length = ", length,
          " is required, got ", positions);
}

void check_model(const Config& config) {
  check_model_sizes(config.model);
  check_lsh(config.lsh);
  check_lsh_heads(config);
  check_huggingface(config);
}

}  // namespace reformer
