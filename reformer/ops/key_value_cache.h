// Keys and values of the texts that a batch has read so far.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/kernels/key_value_pages.h"

namespace reformer {

// Rows of the batch are of different lengths and know nothing of each other.
class KeyValueCache {
 public:
  // `shared_qk`: keys are queries, and are kept as k / |k| (interval_attention
  // has the rule). `type`: float32 or float64. `reach`: only the last so many
  // positions will be asked for, and older ones make room; 0: all are kept.
  KeyValueCache(int64_t batch, int64_t heads, int64_t d_head, bool shared_qk,
                at::ScalarType type, int64_t reach = 0);

  //   k, v    [batch, heads, length, d_head]
  //   counts  [batch]: how many of `length` a row has; the others are not read
  void append(const at::Tensor& k, const at::Tensor& v,
              const std::vector<int64_t>& counts);

  int64_t batch() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t heads() const { return heads_; }
  int64_t d_head() const { return d_head_; }
  bool shared_qk() const { return shared_qk_; }
  int64_t reach() const { return reach_; }
  at::ScalarType type() const { return type_; }

  // Positions of each row.
  const std::vector<int64_t>& lengths() const { return lengths_; }

  // As the kernels see it, a view each row of the batch; until the next append.
  template <class T>
  std::vector<kernels::KeyValuePages<T>> pages() const;

 private:
  void make_room(int64_t row, int64_t length);

  int64_t heads_;
  int64_t d_head_;
  bool shared_qk_;
  at::ScalarType type_;
  int64_t reach_;
  std::vector<int64_t> lengths_;                 // [batch]
  std::vector<std::vector<at::Tensor>> blocks_;  // [batch], several pages each
  std::vector<std::vector<void*>> pages_;        // [batch], one after the other
};

}  // namespace reformer
