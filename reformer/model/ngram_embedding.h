// Embeddings of n-grams: what an input is together with those before it.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/config/config.h"
#include "reformer/model/parameter_store.h"

namespace reformer {

// For each n from 2 to model.ngram_length a table of model.ngram_rows vectors,
// in which an n-gram of inputs has a row by its hash (hash n-gram embeddings,
// Pagnoni et al. 2024; ops/ngram_rows). Before the first input stand start
// tokens. Without n-grams (the paper's) there are no tables.
class NgramEmbedding {
 public:
  NgramEmbedding(const Config& config, ParameterStore& store);

  // Inputs before a position that its vector depends on; 0 without n-grams.
  int64_t context() const { return static_cast<int64_t>(tables_.size()); }

  //   inputs   [batch, length] int64 from the first one on, on the model's
  //            device
  //   returns  [batch, n, d_model], the sum over the tables, of the n inputs
  //            from `at` on; differentiable in the tables; undefined without
  //            n-grams
  at::Tensor encode(const at::Tensor& inputs, int64_t at, int64_t n) const;

  //   recent   [rows, context + 1] int64: the last inputs of each row
  //   returns  [rows, d_model], likewise, of the last one
  at::Tensor encode_last(const at::Tensor& recent) const;

  // [rows, context] int64: what stands before the first input of a row.
  at::Tensor before_start(int64_t rows) const;

  // Adds the gradients of the tables: d [batch, n, d_model], that of
  // encode(inputs, at, n).
  void add_gradients(const at::Tensor& inputs, const at::Tensor& d,
                     int64_t at = 0) const;

 private:
  at::Tensor sum(const at::Tensor& with_context) const;
  std::vector<at::Tensor> rows_of(const at::Tensor& with_context) const;

  int64_t start_token_;
  double scale_;
  Placement placement_;
  std::vector<at::Tensor> tables_;  // of n = 2, 3, …: [ngram_rows, d_model]
};

}  // namespace reformer
