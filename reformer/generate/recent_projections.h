// What short convolutions of a layer remember of the texts so far: the last
// queries, keys and values as they were projected.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/model/attention_layer.h"

namespace reformer {

class RecentProjections {
 public:
  // Of a layer without short convolutions nothing is kept.
  RecentProjections(const AttentionLayer& layer, int64_t batch,
                    const Placement& placement);

  // The first positions of each row, [batch, heads, length, d_head] of
  // AttentionLayer::project; counts [batch]: how many are a row's own.
  void read(const Projected& projected, const std::vector<int64_t>& counts);

  // AttentionLayer::convolved of the next position of each row in use, which is
  // remembered. Nothing waits for a GPU; it may be captured.
  Projected next(const Projected& projected) const;

  // Rows that come and go, as KeyValueCache's.
  void use_rows(int64_t rows);
  void take_row(int64_t row, const RecentProjections& one);
  void move_row(int64_t from, int64_t to);
  void clear_row(int64_t row);

 private:
  at::Tensor of_rows(const at::Tensor& recent) const {
    return recent.narrow(0, 0, rows_);
  }

  int64_t rows_;
  std::vector<at::Tensor> filters_;
  // [batch, heads, taps, d_head] each, in the order of the filters, the last
  // position first.
  std::vector<at::Tensor> recent_;
};

}  // namespace reformer
