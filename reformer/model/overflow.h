// How much the windows of LSH layers cut off.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "reformer/model/stack.h"

namespace reformer {

class Communicator;

// The share of same-bucket pairs outside their windows, the mean over layers.
class OverflowMean {
 public:
  // What each layer of the stack hashed to (Stack::evaluate). Ranks that share
  // sequences have some of the heads each, and count together.
  void add(const std::vector<at::Tensor>& buckets, const Stack& stack,
           Communicator* ranks = nullptr);

  double mean() const { return layers_ == 0 ? 0 : sum_ / double(layers_); }

 private:
  double sum_ = 0;
  int64_t layers_ = 0;
};

}  // namespace reformer
