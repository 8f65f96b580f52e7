// What an attention layer remembers of the texts so far, and how it goes on.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "reformer/generate/attend_next.h"
#include "reformer/generate/huggingface_cache.h"
#include "reformer/generate/recent_projections.h"
#include "reformer/model/attention_layer.h"

namespace reformer {

// The function of AttentionLayer::forward in evaluation, with LSH windows by
// the trailing rule whatever the layer's: under `chunk` a later token may shift
// what an earlier one sees, and nothing could be kept.
class AttentionCache {
 public:
  AttentionCache(const AttentionLayer& layer, int64_t batch, const Pass& pass,
                 const Placement& placement);

  //   x        [batch, length, d_model]: the first positions of each row
  //   counts   [batch]: how many of them are a row's own
  //   ngrams   Pass::ngrams of these positions
  //   buckets  as AttentionLayer::forward's
  //   y        [batch, length, d_model], to which the layer's output is added;
  //            of no meaning beyond a row's count
  //
  // The whole layer, for an empty cache. With interruption points, on a CPU
  // within kernels too.
  void read(const at::Tensor& x, const std::vector<int64_t>& counts,
            const at::Tensor& ngrams, at::Tensor& buckets, const at::Tensor& y);

  // Throws Error unless `buckets`, where they are defined, are those of
  // `length` positions: before any layer has changed. Looks at them, which
  // waits for a GPU.
  void check_given(const at::Tensor& buckets, int64_t length) const;

  // Before each step: a place for one more position of the first `rows` rows.
  // Returns whether steps that were captured before are wrong from here on.
  bool extend(int64_t rows);

  // Rows that come and go, as KeyValueCache's.
  void use_rows(int64_t rows);
  void take_row(int64_t row, AttentionCache& one);
  void move_row(int64_t from, int64_t to);
  void clear_row(int64_t row);

  // Whether a step is the same work on the same memory until extend says
  // otherwise, and asks the host for nothing in between.
  bool can_be_captured() const { return !huggingface_; }

  //   x         [batch, 1, d_model]: the next position of every row
  //   position  [batch] int64: how many came before it
  //   ngrams    Pass::ngrams of this position
  //   y         [batch, 1, d_model], to which the layer's output is added
  //
  // The cost does not depend on the number of positions before, but for full
  // attention. Nothing waits for a GPU.
  void step(const at::Tensor& x, const at::Tensor& position,
            const at::Tensor& ngrams, at::Tensor& buckets, const at::Tensor& y);

 private:
  bool hashes() const { return reformer::hashes(layer_.kind()); }
  bool is_lsh() const { return layer_.kind() == AttentionKind::kLsh; }
  void require_buckets(const at::Tensor& buckets, int64_t length) const;
  // Heads that see alike, one after the other.
  struct HeadGroup {
    int64_t first;
    int64_t count;
    KeyValueCache cache;
    BucketHistory history;  // of no rounds where nothing is hashed
    EarlierPositions earlier;

    at::Tensor of(const at::Tensor& x) const {
      return x.defined() ? x.narrow(1, first, count) : x;
    }
  };

  HeadGroup group(int64_t first, int64_t count, bool hashed, int64_t batch,
                  const Placement& placement) const;
  Projected project(const at::Tensor& x) const;
  void hash(const at::Tensor& q, const at::Tensor& ngrams,
            at::Tensor& buckets) const;
  at::Tensor attend(const Projected& turned, const at::Tensor& buckets) const;

  const AttentionLayer& layer_;
  Pass pass_;
  RecentProjections recent_;
  LshConfig lsh_;         // the layer's, trailing, with the pass's rounds
  at::Tensor rotations_;  // of LSH layers; the same for every position
  std::vector<HeadGroup> groups_;  // of LSH layers the first one hashes
  std::optional<HuggingfaceCache> huggingface_;  // in place of groups
};

}  // namespace reformer
