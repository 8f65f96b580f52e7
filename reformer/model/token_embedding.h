// From tokens to what a stack reads: a row of a table each, and what tells
// positions apart.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "reformer/config/config.h"
#include "reformer/model/parameter_store.h"
#include "reformer/model/positions.h"

namespace reformer {

class TokenEmbedding {
 public:
  // A table of `tokens` rows, of parameters that begin with `prefix`.
  TokenEmbedding(const Config& config, int64_t tokens,
                 const std::string& prefix, ParameterStore& store);

  // With the table of another, and positions of its own.
  TokenEmbedding(const Config& config, const TokenEmbedding& shared,
                 const std::string& prefix, ParameterStore& store);

  // [batch, length, d_model] of inputs [batch, length] int64, the first of
  // which stands at first_position: sqrt(d_model) times the table's row, whose
  // entries begin with variance 1 / d_model, as an output projection's do that
  // shares them. Differentiable.
  at::Tensor embed(const at::Tensor& inputs, int64_t first_position) const;

  // [n, d_model] of n inputs, each with a position of its own; both [n] int64
  // on the model's device, and nothing waits for it.
  at::Tensor embed_at(const at::Tensor& inputs,
                      const at::Tensor& positions) const;

  // Adds the gradients of table and positions: d is that of
  // embed(inputs, first_position).
  void add_gradients(const at::Tensor& inputs, const at::Tensor& d,
                     int64_t first_position = 0) const;

  const at::Tensor& table() const { return table_; }  // [tokens, d_model]
  const Positions& positions() const { return positions_; }

 private:
  at::Tensor embed_with(const at::Tensor& inputs,
                        const at::Tensor& positions) const;

  at::Tensor table_;
  Positions positions_;
};

}  // namespace reformer
