#include "reformer/model/overflow.h"

#include <ATen/ops/zeros.h>

#include "reformer/distributed/communicator.h"
#include "reformer/ops/interval_statistics.h"

namespace reformer {
namespace {

// The share of a layer on all ranks. Of a rank whose heads do not hash
// `buckets` is undefined.
double common_overflow(const at::Tensor& buckets, const LshConfig& lsh,
                       Communicator& ranks) {
  const auto own = at::zeros({2}, at::kLong);  // pairs, those outside
  if (buckets.defined()) {
    const auto counted = lsh_statistics(buckets, lsh);
    own[0] = counted.same_bucket;
    own[1] = counted.outside_window;
  }
  const auto all = ranks.gathered(own.to(ranks.device())).sum(0).cpu();
  const auto pairs = all[0].item<int64_t>();
  return pairs == 0 ? 0 : double(all[1].item<int64_t>()) / double(pairs);
}

}  // namespace

void OverflowMean::add(const std::vector<at::Tensor>& buckets,
                       const Stack& stack, Communicator* ranks) {
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const auto& layer = stack.blocks()[i].attention;
    if (layer.kind() != AttentionKind::kLsh) continue;
    if (ranks == nullptr && !buckets[i].defined()) continue;
    sum_ += ranks != nullptr ? common_overflow(buckets[i], layer.lsh(), *ranks)
                             : lsh_statistics(buckets[i], layer.lsh()).overflow;
    ++layers_;
  }
}

}  // namespace reformer
