#include "tests/model/small_translation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

namespace reformer {
namespace {

// [rows, longest] bool: the first so many of each row.
at::Tensor first_of(const std::vector<int64_t>& lengths, int64_t longest) {
  return at::arange(longest).unsqueeze(0).lt(
      at::tensor(lengths, at::kLong).unsqueeze(1));
}

at::Tensor tokens_of(const Config& config, uint64_t seed,
                     const at::Tensor& mask, int64_t padding) {
  auto sizes = config;
  sizes.train.batch = mask.size(0);
  sizes.train.length = mask.size(1);
  return at::where(mask, random_tokens(sizes, seed), padding);
}

}  // namespace

Config small_translation_config(const std::string& attention,
                                const std::string& encoder_attention) {
  Config config = small_config_of(attention);
  config.task.name = "none";
  config.model.layers = 3;
  config.model.encoder_layers = 2;
  config.model.encoder_attention = encoder_attention;
  config.model.positions = "sinusoid";
  config.model.feed_forward_chunk = 7;
  config.train.label_smoothing = 0.1;
  config.train.batch = 3;
  config.train.length = 33;
  return config;
}

Batch padded_pairs(const Config& config, uint64_t seed, int64_t padding) {
  Batch batch;
  batch.source_mask = first_of({21, 33, 1}, 33);
  batch.loss_mask = first_of({29, 5, 17}, 29);
  batch.source = tokens_of(config, seed, batch.source_mask, padding);
  batch.tokens = tokens_of(config, seed + 1, batch.loss_mask, padding);
  return batch;
}

Batch alone(const Batch& batch, int64_t row) {
  const auto cut = [&](const at::Tensor& x, const at::Tensor& mask) {
    return x.narrow(0, row, 1).narrow(1, 0, mask[row].sum().item<int64_t>());
  };
  Batch one;
  one.tokens = cut(batch.tokens, batch.loss_mask);
  one.loss_mask = cut(batch.loss_mask, batch.loss_mask);
  one.source = cut(batch.source, batch.source_mask);
  one.source_mask = cut(batch.source_mask, batch.source_mask);
  return one;
}

Step step_of(EncoderDecoder& model, const Batch& batch, double scale) {
  model.zero_gradients();
  Step step{read(model.add_gradients(batch, training_pass(), scale)), {}};
  for (const auto& parameter : model.parameters()) {
    step.gradients.push_back({parameter.name, parameter.gradient()});
  }
  return step;
}

}  // namespace reformer
