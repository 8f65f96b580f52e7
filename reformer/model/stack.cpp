#include "reformer/model/stack.h"

#include "reformer/model/reversible_stack.h"
#include "reformer/model/stored_stack.h"

namespace reformer {

std::unique_ptr<Stack> make_stack(const Config& config, ParameterStore& store) {
  std::vector<Block> blocks;
  for (int64_t layer = 0; layer < config.model.layers; ++layer) {
    blocks.emplace_back(config, layer, store);
  }
  if (config.model.block == "stored") {
    return std::make_unique<StoredStack>(std::move(blocks));
  }
  if (config.model.block == "residual") {
    return std::make_unique<ResidualStack>(std::move(blocks));
  }
  return std::make_unique<ReversibleStack>(std::move(blocks));
}

}  // namespace reformer
