// What a position of one head attends to, the slow way in float64: for pictures
// of trained models.
#pragma once

#include <cstdint>
#include <vector>

namespace reformer::cli {

struct HeadVectors {
  const float* q;  // [length, d_head], turned
  const float* k;  // likewise; null: shared with q
  int64_t length;  // of what the position may see
  int64_t d_head;
  bool successors = false;  // a key offers the value of the position after it
};

struct ReadValue {
  int64_t position;  // whose value is read
  double weight;
};

// The softmax of `query` over the keys that it sees, one of the result for each
// of `seen`, in that order.
std::vector<ReadValue> read_values(const HeadVectors& head, int64_t query,
                                   const std::vector<int64_t>& seen);

// Whose value the key offers.
int64_t value_of_key(const HeadVectors& head, int64_t key);

}  // namespace reformer::cli
