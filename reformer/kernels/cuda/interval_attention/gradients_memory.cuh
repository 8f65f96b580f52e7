// Where the backward pass of interval attention keeps things.
#pragma once

#include "reformer/kernels/cuda/interval_attention/gradients.cuh"
#include "reformer/kernels/cuda/interval_attention/launch.cuh"

namespace reformer::kernels::cuda {

// In a block's shared memory, in bytes. Rows beyond kRows are the halo's:
// queries or keys before or after the block's own.
template <int D, int kRows, int kHalo, bool kKeep>
struct BackwardLayout {
  static constexpr int kAll = kRows + kHalo;
  static constexpr int kQ = 0;
  static constexpr int kDOutput = kQ + kAll * D * 2;
  static constexpr int kValues = kDOutput + kAll * D * 2;
  static constexpr int kHaloKeys = kValues + kAll * D * 2;
  static constexpr int kInterval = kHaloKeys + kHalo * D * 2;  // and one more
  static constexpr int kSpan = kInterval + (kAll + 2) * 8;     // Span [kAll]
  static constexpr int kStatistics = kSpan + kAll * 8;         // float2 [kAll]
  static constexpr int kScales = kStatistics + kAll * 8;       // float [kAll]
  static constexpr int kQueryRow = kScales + kAll * 4;         // int [kAll]
  static constexpr int kKeyRow = kQueryRow + kAll * 4;         // KeyRow [kAll]
  static constexpr int kEarlier = kKeyRow + kAll * 8;
  // Then, for each earlier round, Span [kAll] and float [kAll]; then the
  // block's own keys where they are not q; then what the first pass keeps,
  // unless it has room where the block's own values were, which warps have in
  // registers by then.
  static constexpr __host__ __device__ int own_keys(int round) {
    return (kEarlier + round * kAll * 12 + 255) / 256 * 256;
  }
  static constexpr int kKeptBytes = kKeep ? kRows * kRows * 2 : 0;
  static constexpr bool kKeptAmongValues =
      OwnRows<D>::kInRegisters && kKeptBytes <= kRows * D * 2;
  static constexpr __host__ __device__ int kept(int round, bool shared) {
    if (kKeptAmongValues) return kValues;
    return own_keys(round) + (shared ? 0 : kRows * D * 2);
  }
  static constexpr int bytes(int round, bool shared) {
    return own_keys(round) + (shared ? 0 : kRows * D * 2) +
           (kKeptAmongValues ? 0 : kKeptBytes);
  }
};

// In the workspace, in floats.
struct BackwardWorkspace {
  explicit BackwardWorkspace(const IntervalAttentionGradArgs<bf16>& args)
      : rows((args.forward.batch * args.forward.heads * args.forward.length +
              3) /
             4 * 4),
        sums(args.forward.rounds.rounds > 1
                 ? heads_together(args.forward) * args.forward.length *
                       padded_d(args.forward.d_head)
                 : 0),
        separate(args.forward.k.data != nullptr) {}
  int64_t floats() const { return 3 * rows + (separate ? 3 : 2) * sums; }

  int64_t rows;
  int64_t sums;
  bool separate;
};

}  // namespace reformer::kernels::cuda
