#include "reformer/model/stack.h"

#include <ATen/core/grad_mode.h>

#include "reformer/model/reversible_stack.h"
#include "reformer/model/stored_stack.h"

namespace reformer {

Streams Stack::evaluate(Streams x, const Pass& pass,
                        std::vector<at::Tensor>* buckets, int64_t end) const {
  const at::NoGradGuard no_grad;
  for_each_branch(
      x, end,
      [&](int64_t i, const at::Tensor& x1, const at::Tensor& x2) {
        at::Tensor used;
        blocks_[i].attention.add_to(x1, x2, pass, used, 1);
        if (buckets) buckets->push_back(used);
      },
      [&](int64_t i, const at::Tensor& x2, const at::Tensor& x1) {
        blocks_[i].feed_forward.add_to(x2, x1, pass, 1);
      });
  return x;
}

std::unique_ptr<Stack> make_stack(const Config& config, ParameterStore& store) {
  std::vector<Block> blocks;
  for (int64_t layer = 0; layer < config.model.layers; ++layer) {
    blocks.emplace_back(config, layer, store);
  }
  if (config.model.block == BlockKind::kStored) {
    return std::make_unique<StoredStack>(std::move(blocks));
  }
  if (config.model.block == BlockKind::kResidual) {
    return std::make_unique<ResidualStack>(std::move(blocks));
  }
  return std::make_unique<ReversibleStack>(std::move(blocks));
}

}  // namespace reformer
