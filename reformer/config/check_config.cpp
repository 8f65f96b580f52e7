#include "reformer/config/config.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "reformer/base/errors.h"
#include "reformer/config/bucket_count.h"
#include "reformer/config/convolution_limits.h"
#include "reformer/config/head_sizes.h"
#include "reformer/config/ngram_limits.h"

namespace reformer {
namespace {

// Positions and sizes fit int32, in which the kernels keep them; products of
// two fit int64.
constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
constexpr int64_t kBytes = 256;
constexpr int64_t kLargestImage = 16384;
constexpr int64_t kLongestKey = 64;
constexpr int64_t kMostToyWords = 3600;
constexpr int64_t kMostLayers = 1 << 20;
constexpr int64_t kWidestConvolution = kMostConvolutionTaps + 1;

void require_within(const char* key, int64_t value, int64_t least,
                    int64_t most = kLargest) {
  require(value >= least && value <= most, key, ": a whole number from ", least,
          " to ", most, " is required, got ", value);
}

// These are written so that NaN fails.
void require_fraction(const char* key, double value) {
  require(value >= 0 && value <= 1, key, ": from 0 to 1 is required, got ",
          value);
}

void require_below_one(const char* key, double value) {
  require(value >= 0 && value < 1, key,
          ": at least 0 and less than 1 is required, got ", value);
}

void require_not_negative(const char* key, double value) {
  require(value >= 0 && std::isfinite(value), key,
          ": a number of at least 0 is required, got ", value);
}

void require_positive(const char* key, double value) {
  require(value > 0 && std::isfinite(value), key,
          ": a number above 0 is required, got ", value);
}

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

// Stops at `enough`, before the product can overflow.
int64_t product_up_to(int64_t enough, const std::vector<int64_t>& factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (product < enough) product *= factor;
  }
  return product;
}

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

void check_model(const ModelConfig& model) {
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
          config.lsh.hashed_heads == HashedHeads::kAll,
      "model.attention: lsh_huggingface has neither successor values nor a "
      "local window nor n-grams; model.successor_fraction and "
      "lsh.local_window of 0, lsh.hashed_heads of all and no lsh.ngrams are "
      "required");
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

void check_train_counts(const TrainConfig& train) {
  require_within("train.steps", train.steps, 1);
  require_within("train.batch", train.batch, 1);
  require_within("train.length", train.length, 1);
  require_within("train.seed", train.seed, 0,
                 std::numeric_limits<int64_t>::max());
  require_within("train.accumulate", train.accumulate, 1);
  require_within("train.warmup", train.warmup, 0);
  require_within("train.evaluate_every", train.evaluate_every, 0);
  require_within("train.evaluate_batches", train.evaluate_batches, 0);
  require_within("train.checkpoint_every", train.checkpoint_every, 0);
  require_within("train.keep", train.keep, 1);
  require_within("train.log_every", train.log_every, 1);
  require_within("train.sample_length", train.sample_length, 0);
}

void check_optimizer(const TrainConfig& train) {
  require_not_negative("train.device_memory", train.device_memory);
  require(train.cuda_graph != GraphUse::kOn || !train.offload,
          "train.cuda_graph: auto or off is required with train.offload, got "
          "on");
  require(train.cuda_graph != GraphUse::kOn || train.accumulate == 1,
          "train.cuda_graph: auto or off is required with train.accumulate = ",
          train.accumulate, ", got on");
  require_positive("train.learning_rate", train.learning_rate);
  require_not_negative("train.weight_decay", train.weight_decay);
  require_below_one("train.beta1", train.beta1);
  require_below_one("train.beta2", train.beta2);
  require_below_one("train.momentum", train.momentum);
  require_positive("train.epsilon", train.epsilon);
  require_not_negative("train.clip", train.clip);
  require_below_one("train.label_smoothing", train.label_smoothing);
  require_not_negative("train.minutes", train.minutes);
  require(train.weight_decay == 0 || train.optimizer == OptimizerKind::kAdamw ||
              train.optimizer == OptimizerKind::kMuon,
          "train.weight_decay: 0 is required, ", train.optimizer,
          " has none; got ", train.weight_decay);
  require(train.schedule != ScheduleKind::kCosine || train.steps > train.warmup,
          "train.steps: more than train.warmup = ", train.warmup,
          " is required by the cosine schedule, got ", train.steps);
}

void check_duplication(const Config& config) {
  require_within("task.alphabet", config.task.alphabet, 1);
  const int64_t needed = config.task.alphabet + 1;
  require(config.model.vocabulary >= needed,
          "model.vocabulary: at least task.alphabet + 1 = ", needed,
          " is required, got ", config.model.vocabulary);
  const int64_t length = config.train.length;
  require(length >= 4 && length % 2 == 0,
          "train.length: an even number of at least 4 is required by "
          "duplication, got ",
          length);
}

void check_recall(const Config& config) {
  const auto& task = config.task;
  require_within("task.alphabet", task.alphabet, 2, kLargest / 2);
  require_within("task.key_length", task.key_length, 1, kLongestKey);
  require(config.model.vocabulary >= 2 * task.alphabet,
          "model.vocabulary: at least 2 task.alphabet = ", 2 * task.alphabet,
          " is required by recall, got ", config.model.vocabulary);
  const int64_t least = 2 * (task.key_length + 1);
  require(config.train.length >= least, "train.length: at least ", least,
          ", two keys with their values, is required by recall, got ",
          config.train.length);
  const std::vector<int64_t> factors(size_t(task.key_length), task.alphabet);
  const int64_t pairs = recall_pairs(config);
  const int64_t keys = product_up_to(pairs, factors);
  require(keys >= pairs, "task.key_length: at least ", pairs,
          " keys are required by train.length = ", config.train.length,
          ", got task.alphabet^", task.key_length, " = ", keys);
}

void check_images(const Config& config) {
  require_within("task.image_size", config.task.image_size, 1, kLargestImage);
  const int64_t length = 3 * config.task.image_size * config.task.image_size;
  require(config.train.length == length,
          "train.length: 3 task.image_size^2 = ", length,
          " is required by images, got ", config.train.length);
}

void check_language(const char* key, const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
  require(!name.empty() && plain, key,
          ": a name of letters, digits, - and _ is required, got '", name, "'");
}

void check_translation(const Config& config) {
  const auto& task = config.task;
  const auto& model = config.model;
  const auto& train = config.train;
  require(model.encoder_layers > 0,
          "model.encoder_layers: at least 1 is required by ", task.name,
          ", whose source an encoder reads; got 0");
  require_within("train.batch_tokens", train.batch_tokens, 0);
  require(train.batch_tokens == 0 || train.batch_tokens >= 2 * train.length,
          "train.batch_tokens: at least 2 train.length = ", 2 * train.length,
          ", room for the longest pair, is required, got ", train.batch_tokens);
  require(train.length >= 2,
          "train.length: at least 2, a token and the end, is required by "
          "translation, got ",
          train.length);
  if (task.name == TaskKind::kTranslationToy) {
    require_within("task.alphabet", task.alphabet, 1, kMostToyWords);
    return;
  }
  check_language("task.source_language", task.source_language);
  check_language("task.target_language", task.target_language);
  require(task.source_language != task.target_language,
          "task.target_language: another than task.source_language is "
          "required, got '",
          task.target_language, "' for both");
}

void check_task(const Config& config) {
  const TaskKind name = config.task.name;
  require_below_one("task.repeats", config.task.repeats);
  require(config.task.repeats == 0 || name == TaskKind::kText,
          "task.repeats: of text; 0 is required by ", config.task.name,
          ", got ", config.task.repeats);
  if (name == TaskKind::kNone) return;
  const bool pairs =
      name == TaskKind::kTranslation || name == TaskKind::kTranslationToy;
  require(pairs || config.model.encoder_layers == 0,
          "model.encoder_layers: 0 is required by ", config.task.name,
          ", which has no source for an encoder; got ",
          config.model.encoder_layers);
  if (name == TaskKind::kDuplication) {
    check_duplication(config);
    return;
  }
  if (name == TaskKind::kRecall) {
    check_recall(config);
    return;
  }
  if (pairs) {
    check_translation(config);
    return;
  }
  require(config.task.tokenizer.empty() || name == TaskKind::kText,
          "task.tokenizer: of text and translation, not of ", config.task.name);
  if (!config.task.tokenizer.empty()) return;
  require_within("task.byte_offset", config.task.byte_offset, 0, kBytes);
  require(config.task.byte_offset == 0 || name == TaskKind::kText,
          "task.byte_offset: 0 is required by ", config.task.name, ", got ",
          config.task.byte_offset);
  const int64_t tokens = kBytes + config.task.byte_offset;
  require(config.model.vocabulary >= tokens, "model.vocabulary: at least ",
          tokens, ", one for each byte, is required by ", config.task.name,
          ", got ", config.model.vocabulary);
  if (name == TaskKind::kImages) check_images(config);
}

// Bytes are counted in int64, a million times what a machine has. Predictions
// add up at most 32 for each parameter, and 64 for each number of a layer.
void check_products(const Config& config) {
  constexpr double kMost = double(int64_t{1} << 62);
  const auto& model = config.model;
  const double width = double(model.heads * head_size(model));
  const double d_model = double(model.d_model);
  const bool encoder = model.encoder_layers > 0;
  const double layers = double(model.layers + model.encoder_layers);
  const double parameters =
      layers * d_model * ((encoder ? 8 : 4) * width + 2 * double(model.d_ff)) +
      d_model * (3 * double(model.vocabulary) +
                 (encoder ? 2 : 1) * double(config.train.length) +
                 double(ngram_tables(model)) * double(model.ngram_rows));
  require(128 * parameters <= kMost,
          "model: fewer parameters are required than the some ", parameters,
          " of model.layers, d_model, d_ff, heads and vocabulary");
  const double widest =
      std::max({d_model, width, double(model.d_ff), double(model.vocabulary)}) +
      double(model.heads) * double(bucket_rounds(config.lsh));
  const double tokens =
      std::max(double(config.train.batch * config.train.length),
               double(config.train.batch_tokens));
  require((encoder ? 96 : 64) * tokens * widest * layers <= kMost &&
              tokens * double(config.train.accumulate) <= kMost,
          "train.batch: fewer sequences, or shorter ones, are required than ",
          config.train.batch, " of train.length = ", config.train.length,
          " for a model of these sizes");
}

constexpr double kLongestTimeout = 86400;  // seconds

void check_distributed(const Config& config) {
  const auto& train = config.train;
  require(train.sequence_parallel == 1 || config.model.encoder_layers == 0,
          "train.sequence_parallel: 1 is required by an encoder-decoder, got ",
          train.sequence_parallel);
  require_within("train.sequence_parallel", train.sequence_parallel, 1,
                 config.model.heads);
  for (const auto kind :
       {AttentionKind::kLocalSeparateQk, AttentionKind::kLshHuggingface}) {
    require(
        train.sequence_parallel == 1 || !config.model.attention.contains(kind),
        "train.sequence_parallel: 1 is required by ", name_of(kind),
        " attention, got ", train.sequence_parallel);
  }
  require(train.length % train.sequence_parallel == 0,
          "train.sequence_parallel: a divisor of train.length = ", train.length,
          " is required, got ", train.sequence_parallel);
  require(train.sequence_parallel == 1 || train.sample_length == 0,
          "train.sample_length: 0 is required with train.sequence_parallel = ",
          train.sequence_parallel, ", got ", train.sample_length);
  require(train.sequence_parallel == 1 || train.cuda_graph != GraphUse::kOn,
          "train.cuda_graph: auto or off is required with "
          "train.sequence_parallel = ",
          train.sequence_parallel, ", got on");
  const double timeout = config.distributed.timeout;
  require(timeout >= 1 && timeout <= kLongestTimeout,
          "distributed.timeout: from 1 to ", kLongestTimeout,
          " seconds are required, got ", timeout);
}

}  // namespace

void check(const Config& config) {
  check_model(config.model);
  check_lsh(config.lsh);
  check_lsh_heads(config);
  check_huggingface(config);
  check_train_counts(config.train);
  check_optimizer(config.train);
  check_task(config);
  check_distributed(config);
  if (config.model.positions == PositionKind::kAxial) {
    check_axial(config.model, config.train.length);
  }
  require(!config.train.offload || config.model.block == BlockKind::kReversible,
          "train.offload: false is required by model.block = ",
          config.model.block, ", got true");
  check_products(config);
}

}  // namespace reformer
