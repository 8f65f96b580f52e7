#include "reformer/config/check_config.h"

#include <algorithm>
#include <limits>

#include "reformer/base/errors.h"
#include "reformer/config/bucket_count.h"
#include "reformer/config/setting_limits.h"

namespace reformer {
namespace {

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
  check_model(config);
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
