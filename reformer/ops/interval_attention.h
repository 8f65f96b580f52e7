// Attention in which each query sees one interval of a permuted sequence in
// each round: the one operation behind LSH, local and full attention
// (docs/numerics.md has the equations).
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/kernels/interval_attention.h"

namespace reformer {

// R permutations of the positions and an interval of each for every query.
// Sizes of 1 for batch or heads are shared among all of them.
struct IntervalRounds {
  at::Tensor order;     // [batch, heads, rounds, length] int32: a permutation
  at::Tensor place;     // [batch, heads, length, rounds] int32: its inverse
  at::Tensor interval;  // [batch, heads, length, rounds, 2] int32: [begin, end)
};

// As the kernels see it; every tensor contiguous, and to outlive the view.
kernels::RoundsView view_of(const IntervalRounds& rounds);

struct AttentionResult {
  at::Tensor output;  // [batch, heads, length, d_head], differentiable
  at::Tensor lse;     // [batch, heads, length], carries no gradient; float32
                      // for bfloat16 inputs
  // lse as a pair that keeps all digits, [batch, heads, length, 2]: for
  // interval_attention_backward, from interval_attention_forward only.
  at::Tensor softmax = {};
};

//   q, k, v  [batch, heads, length, d_head]  float32 or float64, any strides,
//            d_head from 8 to 256; on CUDA float32 or bfloat16, d_head a
//            multiple of 8 up to 128
//   k        undefined: shared with q. Then keys are k_j = q_j / |q_j| (0 where
//            |q_j| <= 1e-6, with no gradient as a key), scores q_i . k_j, and a
//            query never attends to itself. Defined: scores q_i . k_j / sqrt(d)
//            and self is a key like any other.
//   mask     [batch, length] bool, true where real; undefined: all are
//
// output_i is the softmax of the scores over the union of i's intervals, each
// pair once, however many rounds found it, of the values that these keys offer;
// v_i where that union is empty; 0 at padded positions, which must have an
// empty interval and lie in nobody's. A key j offers v_j; in the first
// `successor_heads` heads v of the next real position, of the last one its own:
// what came after the last time. Only where k is shared.
// lse_i is the log of the softmax's denominator, -inf where the union is empty.
//
// Memory beyond inputs and outputs is O(length), never O(length^2). Forward and
// backward are the same bit for bit for any number of threads and for a row
// alone or in a batch. Throws Error on wrong shapes or types, and when order is
// no permutation with inverse place or an interval is not within [0, length];
// on CUDA also where intervals are not monotone in their order, begin or end
// decreasing from place to place. Looking at them waits for the GPU.
AttentionResult interval_attention(const at::Tensor& q, const at::Tensor& k,
                                   const at::Tensor& v,
                                   const IntervalRounds& rounds,
                                   const at::Tensor& mask = {},
                                   int64_t successor_heads = 0);

// What that throws, without attending; the elements of `rounds` are looked at
// only where somebody else made them.
enum class RoundsOrigin { kGiven, kOurs };
void check_interval_attention(const at::Tensor& q, const at::Tensor& k,
                              const at::Tensor& v, const IntervalRounds& rounds,
                              const at::Tensor& mask, int64_t successor_heads,
                              RoundsOrigin origin);

// The same without checking `rounds`, for operations that build on it and made
// them themselves.
AttentionResult interval_attention_unchecked(const at::Tensor& q,
                                             const at::Tensor& k,
                                             const at::Tensor& v,
                                             const IntervalRounds& rounds,
                                             const at::Tensor& mask,
                                             int64_t successor_heads = 0);

// And without autograd. Written to `output` where it is defined, a tensor or a
// part of one that empty_rows_like made.
AttentionResult interval_attention_forward(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const IntervalRounds& rounds, const at::Tensor& mask,
    int64_t successor_heads = 0, const at::Tensor& output = {});

struct AttentionGradients {
  at::Tensor q;  // shaped as the inputs; of shared k, q has both parts
  at::Tensor k;  // undefined where k was
  at::Tensor v;
};

// Written to those of `into` that are defined, likewise.
AttentionGradients interval_attention_backward(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const IntervalRounds& rounds, const at::Tensor& mask,
    const AttentionResult& result, const at::Tensor& d_output,
    int64_t successor_heads = 0, const AttentionGradients& into = {});

}  // namespace reformer
