#include "reformer/generate/decoding_memory.h"

#include <algorithm>
#include <bit>

#include "reformer/generate/decoded_attention.h"
#include "reformer/kernels/key_value_pages.h"

namespace reformer {
namespace {

// Pages that KeyValueCache has got for so many that it needs.
int64_t pages_for(int64_t needed, bool single) {
  int64_t pages = 0;
  while (pages < needed) {
    pages += std::clamp<int64_t>(pages, 1, single ? 1 : 16);
  }
  return pages;
}

struct GroupOfHeads {
  int64_t heads;
  int64_t reach;  // 0: everything
  int64_t rounds;
};

int64_t page_memory(const AttentionLayer& layer, const GroupOfHeads& group,
                    int64_t positions, const Placement& placement) {
  constexpr int64_t kPage = kernels::kPagePositions;
  const bool cuda = placement.device.is_cuda();
  const kernels::PageShape shape{group.heads,
                                 kernels::page_row_width(layer.d_head()),
                                 cuda ? group.rounds : 0};
  int64_t needed = (positions + kPage - 1) / kPage;
  if (group.reach > 0) {
    needed = std::min(needed, (group.reach + kPage - 1) / kPage);
  }
  return pages_for(needed, cuda || group.reach > 0) *
         shape.bytes(static_cast<int64_t>(at::elementSize(placement.compute)));
}

int64_t history_memory(const LshConfig& lsh, const GroupOfHeads& group,
                       int64_t positions, bool cuda) {
  const int64_t lists = group.heads * group.rounds;
  if (cuda) {
    return lists * lsh.n_buckets * (lsh.chunk_length + 1) *
           int64_t{sizeof(int32_t)};
  }
  // Vectors that grow by doubling, up to twice the window.
  const auto most = static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(2 * lsh.chunk_length)));
  const int64_t members = std::min(2 * positions, lsh.n_buckets * most);
  return lists * (members * int64_t{sizeof(int32_t)} +
                  lsh.n_buckets * int64_t{sizeof(std::vector<int32_t>)});
}

// Tensors, and lists on the CPU, that grow by doubling: from a position fewer,
// in the worst case.
int64_t huggingface_memory(const AttentionLayer& layer, int64_t rounds,
                           int64_t positions, const Placement& placement) {
  constexpr int64_t kLeast = 64;  // as HuggingfaceCache has
  const int64_t room = std::max(kLeast, 2 * (positions - 1));
  const auto element = static_cast<int64_t>(at::elementSize(placement.compute));
  constexpr int64_t kSorted = sizeof(uint16_t) + sizeof(int32_t);
  return layer.heads() * room *
         (2 * layer.d_head() * element + rounds * kSorted);
}

int64_t layer_memory(const AttentionLayer& layer, const Pass& pass,
                     int64_t positions, const Placement& placement) {
  const auto lsh = decoding_lsh(layer, pass);
  if (layer.kind() == AttentionKind::kLshHuggingface) {
    return huggingface_memory(layer, lsh.rounds, positions, placement);
  }
  const bool hashes = layer.kind() == AttentionKind::kLsh;
  const int64_t hashed = hashes ? layer.hashed_heads() : 0;
  const int64_t others = layer.heads() - hashed;
  int64_t bytes = 0;
  const auto add = [&](const GroupOfHeads& group) {
    if (group.heads == 0) return;
    bytes += page_memory(layer, group, positions, placement);
    if (group.rounds == 0) return;
    bytes += history_memory(lsh, group, positions, placement.device.is_cuda());
  };
  int64_t reach = 0;
  if (is_local(layer.kind())) {
    reach = 2 * layer.local().chunk_length;
  } else if (hashes) {
    reach = layer.near_window() + 1;
  }
  add({hashed, 0, bucket_rounds(lsh)});
  add({others, reach, 0});
  return bytes;
}

}  // namespace

int64_t decoding_memory(const LanguageModel& model, int64_t positions,
                        int64_t rounds) {
  Pass pass;
  pass.rounds = rounds;
  int64_t bytes = 0;
  for (const auto& block : model.stack().blocks()) {
    bytes += layer_memory(block.attention, pass, positions, model.placement());
  }
  return bytes;
}

}  // namespace reformer
