#include "reformer/model/ngram_buckets.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "reformer/config/bucket_count.h"
#include "reformer/ops/ngram_rows.h"

namespace reformer {

NgramBuckets::NgramBuckets(const Config& config)
    : lengths_(config.lsh.ngrams), n_buckets_(config.lsh.n_buckets) {
  for (const int64_t n : lengths_) context_ = std::max(context_, n - 1);
  if (n_buckets_ == 0) {
    n_buckets_ =
        default_bucket_count(config.train.length, config.lsh.chunk_length);
  }
}

at::Tensor NgramBuckets::of(const at::Tensor& inputs) const {
  if (lengths_.empty()) return {};
  const auto rows = ngram_rows(inputs, context_ + 1, n_buckets_);  // 2, 3, …
  std::vector<at::Tensor> chosen;
  chosen.reserve(lengths_.size());
  for (const int64_t n : lengths_) {
    chosen.push_back(rows[static_cast<std::size_t>(n - 2)]);
  }
  return at::stack(chosen, 1).to(at::kUInt16);
}

at::Tensor append_ngrams(const at::Tensor& buckets, const at::Tensor& ngrams) {
  if (!ngrams.defined()) return buckets;
  const auto of_heads = ngrams.unsqueeze(1).expand(
      {ngrams.size(0), buckets.size(1), ngrams.size(1), ngrams.size(2)});
  // As signed numbers, which all of LibTorch knows.
  return at::cat({buckets.view(at::kShort), of_heads.view(at::kShort)}, 2)
      .view(at::kUInt16);
}

}  // namespace reformer
