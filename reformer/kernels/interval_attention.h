// Softmax attention in which every query sees one interval of a permuted
// sequence in each round, and each pair counts once, however many rounds found
// it (paper Sec. 2 and Appendix A; docs/numerics.md has the equations).
#pragma once

#include <cstdint>
#include <type_traits>

#include "reformer/kernels/bf16.h"
#include "reformer/kernels/rows.h"

namespace reformer::kernels {

// A GPU computes the rounds of so many heads together that they have at least
// so many rows, or of all: enough to fill it, and no more, because fp32 sums of
// all of them wait between rounds.
inline constexpr int64_t kRowsTogether = int64_t{1} << 19;

// R permutations of the positions and, for each query, an interval of each.
// The strides are those of a (batch, head); 0 shares one order among them.
struct RoundsView {
  const int32_t* order;     // [rounds, length]: the position at each place
  const int32_t* place;     // [length, rounds]: the place of each position
  const int32_t* interval;  // [length, rounds, 2]: begin and end, in places
  int64_t order_batch_stride;
  int64_t order_head_stride;
  int64_t place_batch_stride;
  int64_t place_head_stride;
  int64_t interval_batch_stride;
  int64_t interval_head_stride;
  int64_t rounds;
};

// Heads in which a key offers not its own value but that of the position after
// it: what came next the last time (docs/numerics.md).
struct SuccessorsView {
  int64_t heads = 0;  // the first so many of each batch
  // Null where all positions are real.
  const int32_t* next = nullptr;  // [batch, length]: the next real position, of
                                  // the last one the first, of a padded one
                                  // itself
  const int32_t* ends = nullptr;  // [batch, 2]: the first and the last real
                                  // position, -1: there is none

  struct Ends {
    int32_t first = -1;
    int32_t last = -1;
  };
  constexpr Ends ends_of(int64_t batch, int64_t head, int64_t length) const {
    if (head >= heads) return {};
    if (ends != nullptr) return {ends[2 * batch], ends[2 * batch + 1]};
    return {0, static_cast<int32_t>(length - 1)};
  }
};

// Which row of v the keys of one (batch, head) offer.
struct OfferedValues {
  bool successors = false;
  const int32_t* next = nullptr;  // [length], or null
  int32_t length = 0;

  constexpr OfferedValues() = default;
  constexpr OfferedValues(const SuccessorsView& view, int64_t batch,
                          int64_t head, int64_t length)
      : successors(head < view.heads),
        next(view.next ? view.next + batch * length : nullptr),
        length(static_cast<int32_t>(length)) {}

  // That of the position after j, or its own where there is none.
  constexpr int32_t row(int32_t j) const {
    const int32_t at = gradient_row(j);
    return at > j ? at : j;
  }

  // The row of d_v that sums the gradients of what j offers: a different one
  // for every j. What the last position offers meets in the first one's row,
  // and is moved from there at the end.
  constexpr int32_t gradient_row(int32_t j) const {
    if (!successors) return j;
    if (next != nullptr) return next[j];
    return j + 1 < length ? j + 1 : 0;
  }
};

// What is known of a row's softmax is kept in float32 at least.
template <class T>
using SoftmaxType =
    std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>  // float; on the CPU double, on CUDA Bf16
struct IntervalAttentionArgs {
  Rows<const T> q;   // [batch, heads, length, d_head]
  Rows<const T> k;   // data null: shared with q, unit keys, self excluded
  Rows<const T> v;   // [batch, heads, length, d_head]
  const bool* mask;  // [batch, length], true: real; null: all are
  SuccessorsView successors;
  RoundsView rounds;
  Rows<T> output;  // [batch, heads, length, d_head], written
  // [batch, heads, length], written: log-sum-exp of the union.
  SoftmaxType<T>* lse;
  // The same as a pair, for the backward pass, [batch, heads, length, 2],
  // written: a reference score (the largest; of Bf16 0 where that cannot
  // overflow) and the sum of exp(score - reference), 0 for a lone token.
  // exp(score - lse) alone would lose the digits of a large lse.
  SoftmaxType<T>* softmax;
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

// Rows of q or k at most this long are keys of zero and carry no gradient as
// keys.
inline constexpr double kSmallestKeyNorm = 1e-6;

namespace cpu {
void interval_attention(const IntervalAttentionArgs<float>& args);
void interval_attention(const IntervalAttentionArgs<double>& args);
void interval_attention_grad(const IntervalAttentionGradArgs<float>& args);
void interval_attention_grad(const IntervalAttentionGradArgs<double>& args);

// Query rows that share one hull of keys: what an interval is rounded up to.
inline constexpr int64_t kTileRows = 16;
}  // namespace cpu

// On devices of compute capability 8.0 and later. Beyond the contract of the
// CPU's: the intervals of a round are monotone in its order, neither begin nor
// end ever decreasing from place to place. All orders that the library makes
// are so: a key's queries are then neighbours. Rows begin at multiples of 16
// bytes, d_head is a multiple of 8 up to 128, length is at most 2^23, batch *
// heads at most 65535: else Error. Up to 64 rounds fit on every GPU, more where
// it has more than 99 KB of shared memory a block; Error before any work where
// they do not.
//
// Everything runs on `stream` and is the same bits from run to run, for a row
// alone and in a batch.
namespace cuda {
// Bytes of `workspace`, which starts at a multiple of 16 bytes and holds
// nothing before or after a call. bf16: the fp32 sums between rounds, twice
// the bytes of q forward and four times backward (six where k is its own);
// one round needs none of them. fp32: nothing.
int64_t interval_attention_workspace(const IntervalAttentionArgs<Bf16>& args);
int64_t interval_attention_grad_workspace(
    const IntervalAttentionGradArgs<Bf16>& args);

void interval_attention(const IntervalAttentionArgs<Bf16>& args,
                        void* workspace, void* stream);
void interval_attention_grad(const IntervalAttentionGradArgs<Bf16>& args,
                             void* workspace, void* stream);

void interval_attention(const IntervalAttentionArgs<float>& args, void* stream);
void interval_attention_grad(const IntervalAttentionGradArgs<float>& args,
                             void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
