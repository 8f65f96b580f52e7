#include "reformer/model/ngram_embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "reformer/model/parameter_gradients.h"
#include "reformer/ops/embedding_gradient.h"
#include "reformer/ops/ngram_rows.h"

namespace reformer {

NgramEmbedding::NgramEmbedding(const Config& config, ParameterStore& store)
    : start_token_(config.model.vocabulary),
      scale_(std::sqrt(double(config.model.d_model))),
      placement_(store.placement()) {
  const int64_t longest = config.model.ngram_length;
  for (int64_t n = 2; n <= longest; ++n) {
    // Together they begin as long as the token's own vector.
    tables_.push_back(
        store.normal("ngrams." + std::to_string(n) + ".weight",
                     {config.model.ngram_rows, config.model.d_model},
                     1 / (scale_ * std::sqrt(double(longest - 1)))));
  }
}

at::Tensor NgramEmbedding::before_start(int64_t rows) const {
  return at::full(
      {rows, context()}, start_token_,
      at::TensorOptions().dtype(at::kLong).device(placement_.device));
}

std::vector<at::Tensor> NgramEmbedding::rows_of(
    const at::Tensor& with_context) const {
  return ngram_rows(with_context, context() + 1, tables_[0].size(0));
}

at::Tensor NgramEmbedding::sum(const at::Tensor& with_context) const {
  const auto rows = rows_of(with_context);
  at::Tensor sum;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const auto vectors = at::embedding(tables_[i], rows[i]);
    sum = sum.defined() ? sum + vectors : vectors;
  }
  return sum * scale_;
}

at::Tensor NgramEmbedding::encode(const at::Tensor& inputs, int64_t at,
                                  int64_t n) const {
  if (tables_.empty()) return {};
  const int64_t known = std::min(at, context());
  const auto here = inputs.narrow(1, at - known, known + n);
  if (known == context()) return sum(here);
  const auto missing =
      before_start(inputs.size(0)).narrow(1, 0, context() - known);
  return sum(at::cat({missing, here}, 1));
}

at::Tensor NgramEmbedding::encode_last(const at::Tensor& recent) const {
  if (tables_.empty()) return {};
  return sum(recent).squeeze(1);
}

void NgramEmbedding::add_gradients(const at::Tensor& inputs,
                                   const at::Tensor& d, int64_t at) const {
  if (tables_.empty()) return;
  const auto rows = rows_of(at::cat({before_start(inputs.size(0)), inputs}, 1));
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    add_embedding_gradient(gradient_sum(tables_[i]),
                           rows[i].narrow(1, at, d.size(1)).flatten(),
                           d.flatten(0, 1), scale_);
  }
}

}  // namespace reformer
