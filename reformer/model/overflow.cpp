#include "reformer/model/overflow.h"

#include "reformer/ops/interval_statistics.h"

namespace reformer {

void OverflowMean::add(const std::vector<at::Tensor>& buckets,
                       const Stack& stack) {
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (!buckets[i].defined()) continue;
    sum_ +=
        lsh_statistics(buckets[i], stack.blocks()[i].attention.lsh()).overflow;
    ++layers_;
  }
}

}  // namespace reformer
