// Interval attention on CUDA devices of compute capability 8.0 and later
// (../interval_attention.h says what it computes).
//
// Beyond the contract of the CPU's: the intervals of a round are monotone in
// its order, neither begin nor end ever decreasing from place to place. All
// orders that the library makes are so: a key's queries are then neighbours.
// Rows begin at multiples of 16 bytes, d_head is a multiple of 8 up to 128,
// length is at most 2^23, batch * heads at most 65535: else Error. Up to 64
// rounds fit on every GPU, more where it has more than 99 KB of shared memory a
// block; Error before any work where they do not.
//
// Everything runs on `stream` and is the same bits from run to run, for a row
// alone and in a batch.
#pragma once

#include <cstdint>

#include "reformer/kernels/interval_attention.h"
#include "reformer/kernels/rows.h"

struct __nv_bfloat16;

namespace reformer::kernels::cuda {

template <class T>  // float or __nv_bfloat16
struct IntervalAttentionArgs {
  Rows<const T> q;   // [batch, heads, length, d_head]
  Rows<const T> k;   // data null: shared with q, unit keys, self excluded
  Rows<const T> v;   // [batch, heads, length, d_head]
  const bool* mask;  // [batch, length], true: real; null: all are
  SuccessorsView successors;
  RoundsView rounds;
  Rows<T> output;  // [batch, heads, length, d_head], written
  float* lse;      // [batch, heads, length], written: log-sum-exp of the union
  // The same as a pair, for the backward pass, [batch, heads, length, 2],
  // written: a reference score (fp32: the largest; bf16: 0 where that cannot
  // overflow) and the sum of exp(score - reference); -inf and 0 for a lone
  // token.
  float* softmax;
  int64_t batch;
  int64_t heads;
  int64_t length;
  int64_t d_head;
};

template <class T>
struct IntervalAttentionGradArgs {
  IntervalAttentionArgs<T> forward;  // with what the forward pass wrote
  Rows<const T> d_output;            // [batch, heads, length, d_head]
  Rows<T> d_q;                       // likewise, written
  Rows<T> d_k;                       // likewise; data null where k is
  Rows<T> d_v;                       // likewise, written
};

// Bytes of `workspace`, which starts at a multiple of 16 bytes and holds
// nothing before or after a call. bf16: the fp32 sums between rounds, twice
// the bytes of q forward and four times backward (six where k is its own);
// one round needs none of them. fp32: nothing.
int64_t interval_attention_workspace(
    const IntervalAttentionArgs<__nv_bfloat16>& args);
int64_t interval_attention_grad_workspace(
    const IntervalAttentionGradArgs<__nv_bfloat16>& args);

void interval_attention(const IntervalAttentionArgs<__nv_bfloat16>& args,
                        void* workspace, void* stream);
void interval_attention_grad(
    const IntervalAttentionGradArgs<__nv_bfloat16>& args, void* workspace,
    void* stream);

void interval_attention(const IntervalAttentionArgs<float>& args, void* stream);
void interval_attention_grad(const IntervalAttentionGradArgs<float>& args,
                             void* stream);

}  // namespace reformer::kernels::cuda
