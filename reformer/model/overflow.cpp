#include "reformer/model/overflow.h"

#include "reformer/ops/interval_statistics.h"

namespace reformer {

void OverflowMean::add(const std::vector<at::Tensor>& buckets,
                       const Stack& stack) {
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const auto& layer = stack.blocks()[i].attention;
    if (layer.kind() != AttentionKind::kLsh || !buckets[i].defined()) continue;
    sum_ += lsh_statistics(buckets[i], layer.lsh()).overflow;
    ++layers_;
  }
}

}  // namespace reformer
