#include "reformer/model/token_embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>

#include <cmath>

#include "reformer/model/parameter_gradients.h"
#include "reformer/ops/embedding_gradient.h"

namespace reformer {

TokenEmbedding::TokenEmbedding(const Config& config, int64_t tokens,
                               const std::string& prefix, ParameterStore& store)
    : table_(store.normal(prefix + "embedding.weight",
                          {tokens, config.model.d_model},
                          1 / std::sqrt(double(config.model.d_model)))),
      positions_(config, store, prefix) {}

TokenEmbedding::TokenEmbedding(const Config& config,
                               const TokenEmbedding& shared,
                               const std::string& prefix, ParameterStore& store)
    : table_(shared.table_), positions_(config, store, prefix) {}

// `positions` may be undefined: nothing to add.
at::Tensor TokenEmbedding::embed_with(const at::Tensor& inputs,
                                      const at::Tensor& positions) const {
  const auto x =
      at::embedding(table_, inputs) * std::sqrt(double(table_.size(1)));
  return positions.defined() ? x + positions : x;
}

at::Tensor TokenEmbedding::embed(const at::Tensor& inputs,
                                 int64_t first_position) const {
  return embed_with(inputs, positions_.encode(first_position, inputs.size(1)));
}

at::Tensor TokenEmbedding::embed_at(const at::Tensor& inputs,
                                    const at::Tensor& positions) const {
  return embed_with(inputs, positions_.encode(positions));
}

void TokenEmbedding::add_gradients(const at::Tensor& inputs,
                                   const at::Tensor& d,
                                   int64_t first_position) const {
  add_embedding_gradient(gradient_sum(table_), inputs.flatten(),
                         d.flatten(0, 1), std::sqrt(double(d.size(2))));
  positions_.add_gradients(d.size(0) == 1 ? d[0] : d.sum(0), first_position);
}

}  // namespace reformer
