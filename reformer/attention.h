/// @file
/// Attention as operations on tensors: LSH attention (paper Sec. 2), attention
/// to nearby positions, and exact attention to everything.
///
/// All of them take and return
///
///     q, k, v, qk  [batch, heads, length, d_head]
///     mask         [batch, length] bool, true where real; undefined: all are
///     returns      [batch, heads, length, d_head]
///
/// of float32 or float64 on the CPU with d_head from 8 to 256, any strides; on
/// a GPU (see cuda_available()) of float32 or bfloat16 with d_head a multiple
/// of 8 up to 128, length up to 2^23 and up to 64 rounds. They run on the
/// device of their inputs and are differentiable in them by LibTorch's
/// autograd. Padded positions are seen by nobody, and their rows are 0. Memory
/// grows with the length, never with its square.
///
/// Wrong shapes, types and options throw Error. All are functions of their
/// arguments alone, without any state: threads may call them at the same time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace reformer {

/// How far a query reaches in the order in which its keys are sorted.
enum class AttentionWindow {
  kChunk,     ///< the paper's: the query's own chunk and the one before
  kTrailing,  ///< the last chunk_length places: exactly causal
};

/// How lsh_attention() hashes, and who sees whom.
struct LshOptions {
  int64_t rounds = 4;          ///< independent hash rounds
  int64_t chunk_length = 128;  ///< m: sorted positions of a chunk
  int64_t n_buckets = 0;       ///< of a round, even; 0: by the length
  int64_t local_window = 0;    ///< so many last positions are seen in any case
  AttentionWindow window = AttentionWindow::kTrailing;  ///< within a bucket
  bool causal = true;           ///< attend to the past only
  int64_t successor_heads = 0;  ///< first heads whose keys offer what came next
  uint64_t seed = 0;            ///< of the hashes: the same seed, the same ones
};

/// LSH attention, all of it (paper Sec. 2 and Appendix A).
///
/// Queries and keys are shared: keys are k_j = qk_j / |qk_j|, scores qk_i .
/// k_j, and a position sees itself only where it sees nobody else. Each round
/// hashes qk into buckets, sorts by bucket, and lets a query see its bucket
/// within the window; one softmax goes over the union of all rounds, each pair
/// once.
///
/// In the first `successor_heads` heads a key offers the value of the position
/// after it. The hashes are functions of the seed, the head and the round: the
/// same for every row of a batch and on every device. On the CPU results are
/// the same, bit for bit, for any number of threads.
at::Tensor lsh_attention(const at::Tensor& qk, const at::Tensor& v,
                         const LshOptions& options = {},
                         const at::Tensor& mask = {});

/// What local_attention() sees.
struct LocalOptions {
  int64_t chunk_length = 128;                        ///< positions of a chunk
  AttentionWindow window = AttentionWindow::kChunk;  ///< in natural order
  bool causal = true;           ///< attend to the past only
  int64_t successor_heads = 0;  ///< as in LshOptions
};

/// Attention to nearby positions, shared queries and keys as in
/// lsh_attention(): each position sees its own chunk and the one before, or
/// with trailing windows the last chunk_length positions (on either side where
/// not causal). Padded positions are left out before chunks are counted.
at::Tensor local_attention(const at::Tensor& qk, const at::Tensor& v,
                           const LocalOptions& options = {},
                           const at::Tensor& mask = {});

/// What full_attention() may do.
struct FullOptions {
  bool causal = true;         ///< attend to the past only
  bool deterministic = true;  ///< false: faster gradients on a GPU, summed in
                              ///< any order
};

/// Exact attention of separate queries and keys, as in the ordinary
/// Transformer: scores q . k / sqrt(d_head), self included. k and v may be of
/// another length than q where neither causal nor masked.
at::Tensor full_attention(const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const FullOptions& options = {},
                          const at::Tensor& mask = {});

/// What full_shared_qk_attention() sees.
struct SharedQkOptions {
  bool causal = true;           ///< attend to the past only
  int64_t successor_heads = 0;  ///< as in LshOptions
};

/// Exact attention of shared queries and keys: what lsh_attention()
/// approximates, and what it is with more and more rounds.
at::Tensor full_shared_qk_attention(const at::Tensor& qk, const at::Tensor& v,
                                    const SharedQkOptions& options = {},
                                    const at::Tensor& mask = {});

}  // namespace reformer
