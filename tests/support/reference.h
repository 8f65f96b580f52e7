// The plain reference: the definition of every operation (docs/numerics.md),
// written down with library calls and dense [length, length] masks,
// differentiable by autograd.
//
// In float64 it is the truth; in float32 it is the plain version that the fast
// one may at most be twice as wrong as. It shares no code with the library
// but the factors of n_buckets.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/config/lsh_config.h"
#include "reformer/ops/bucket_sort.h"
#include "reformer/ops/interval_attention.h"

namespace reformer::reference {

// Bool [batch, heads, length, length], one for each round, the local one
// first: whether query i (dim 2) attends to key j (dim 3). A list, not one
// tensor: the long cases would not fit.
using AttendedSets = std::vector<at::Tensor>;

//   vectors    [batch, heads, length, d_head]
//   rotations  [heads, rounds, d_head, columns]
//   returns    [batch, heads, rounds, length] int64
at::Tensor hash(const at::Tensor& vectors, const at::Tensor& rotations,
                int64_t n_buckets);

// x R, [batch, heads, rounds, length, columns], in float64.
at::Tensor rotated(const at::Tensor& vectors, const at::Tensor& rotations);

// By how much the largest signed column beats the one that `buckets`, int64,
// say was chosen: the most over all factors.
double largest_miss(const at::Tensor& vectors, const at::Tensor& rotations,
                    int64_t n_buckets, const at::Tensor& buckets);

// order and place, int64, by at::sort; shapes as bucket_sort's.
SortedRounds sort(const at::Tensor& buckets, const at::Tensor& mask);

// A_r(i) from the definition: same bucket, within the window of sorted places,
// earlier if causal, real, not itself.
AttendedSets attended_sets(const at::Tensor& buckets, const LshConfig& config,
                           const at::Tensor& mask);

// The sets that given rounds mean, itself left out unless `self_counts`.
AttendedSets attended_sets(const IntervalRounds& rounds, bool self_counts);

// Everything, or everything earlier: what exact attention attends to.
at::Tensor everything(int64_t batch, int64_t length, bool causal,
                      bool self_counts, const at::Tensor& mask);

at::Tensor union_of(const AttendedSets& sets);

// q / |q|, 0 where |q| <= 1e-6.
at::Tensor unit_keys(const at::Tensor& q);

// What each key offers: v, and in the first `successor_heads` heads v of the
// next real position, of the last one its own.
at::Tensor offered(const at::Tensor& v, const at::Tensor& mask,
                   int64_t successor_heads);

// The softmax over `attended`, computed in the dtype of q. k undefined: shared.
AttentionResult attention(const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const at::Tensor& attended,
                          const at::Tensor& mask, int64_t successor_heads = 0);

// The paper's formulation (Appendix A): every round by itself, with log N_ij
// subtracted from its scores, then merged by the rounds' log-sum-exps.
AttentionResult attention_by_rounds(const at::Tensor& qk, const at::Tensor& v,
                                    const AttendedSets& sets,
                                    const at::Tensor& mask);

}  // namespace reformer::reference
