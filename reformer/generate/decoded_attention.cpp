#include "reformer/generate/decoded_attention.h"

namespace reformer {

using kernels::EarlierPositions;

LshConfig decoding_lsh(const AttentionLayer& layer, const Pass& pass) {
  LshConfig config = layer.lsh();
  config.window = Window::kTrailing;
  if (pass.rounds > 0) config.rounds = pass.rounds;
  return config;
}

EarlierPositions earlier_positions(const AttentionLayer& layer, bool hashed) {
  const auto kind = layer.kind();
  if (kind == AttentionKind::kFull)
    return {EarlierPositions::kAll, 0, /*itself=*/true};
  if (kind == AttentionKind::kFullSharedQk) return {EarlierPositions::kAll};
  if (kind == AttentionKind::kLsh) {
    return {hashed ? layer.lsh().local_window : layer.near_window()};
  }
  const auto& local = layer.local();
  const int64_t m = local.chunk_length;
  const bool trailing = local.window == Window::kTrailing;
  // Chunks: one's own and the previous one.
  return {m, trailing ? 0 : m, /*itself=*/has_own_keys(kind)};
}

}  // namespace reformer
