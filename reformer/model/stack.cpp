#include "reformer/model/stack.h"

#include <ATen/core/grad_mode.h>

#include "reformer/model/reversible_stack.h"
#include "reformer/model/stored_stack.h"

namespace reformer {

namespace {

std::vector<Block> blocks_of(const Config& config, StackKind kind,
                             ParameterStore& store) {
  const int64_t encoder_layers = config.model.encoder_layers;
  const bool encoder = kind == StackKind::kEncoder;
  const int64_t layers = encoder ? encoder_layers : config.model.layers;
  const int64_t first_block = encoder ? 0 : encoder_layers;
  int64_t branch = encoder ? 0 : 2 * encoder_layers;
  std::vector<Block> blocks;
  for (int64_t layer = 0; layer < layers; ++layer) {
    blocks.emplace_back(config,
                        BlockPlace{layer, first_block + layer, branch, encoder,
                                   !encoder && encoder_layers > 0},
                        store);
    branch += blocks.back().branches();
  }
  return blocks;
}

}  // namespace

Streams Stack::evaluate(Streams x, const Pass& pass,
                        std::vector<at::Tensor>* buckets, int64_t end) const {
  const at::NoGradGuard no_grad;
  for_each_branch(
      end,
      [&](const BranchPlace& at, const AttentionLayer& layer) {
        at::Tensor used;
        layer.add_to(x[at.to], x[at.from], pass, used, 1);
        if (buckets && !layer.reads_source()) buckets->push_back(used);
      },
      [&](const BranchPlace& at, const FeedForward& layer) {
        layer.add_to(x[at.to], x[at.from], pass, 1);
      });
  return x;
}

std::unique_ptr<Stack> make_stack(const Config& config, StackKind kind,
                                  ParameterStore& store) {
  auto blocks = blocks_of(config, kind, store);
  const int64_t encoder_layers = config.model.encoder_layers;
  const bool encoder = kind == StackKind::kEncoder;
  const int64_t first = encoder ? 0 : encoder_layers;
  const int64_t after = encoder ? encoder_layers : -1;
  if (config.model.block == BlockKind::kStored) {
    return std::make_unique<StoredStack>(std::move(blocks), first, after);
  }
  if (config.model.block == BlockKind::kResidual) {
    return std::make_unique<ResidualStack>(std::move(blocks), first, after);
  }
  return std::make_unique<ReversibleStack>(std::move(blocks), first, after);
}

}  // namespace reformer
