// Interval attention, backward.
//
// With the merged o and softmax of the forward pass every pair's weight is
// p_ij = exp(s_ij - z_i), whatever round found it, so each round adds its own
// pairs' share to the gradients and needs nothing from the others:
//   dv_j += p_ij do_i,   ds_ij = p_ij (do_i . v_j - delta_i),
//   dq_i += ds_ij k_j,   dk_j += ds_ij q_i,   delta_i = do_i . o_i,
// and for unit keys k = q / |q|:  dq_j += (dk_j - k_j (k_j . dk_j)) / |q_j|.
//
// A task marches along a segment as in the forward pass. The ring holds the
// gradients of its keys as well, and adds them to memory when a key leaves.
// Tasks that share keys never run at the same time (add_phases), which
// also fixes the order of the sums.
#include <iterator>
#include <vector>

#include "reformer/base/parallel.h"
#include "reformer/kernels/cpu/simd/gradient_segment.h"
#include "reformer/kernels/cpu/simd/gradient_tasks.h"
#include "reformer/kernels/interval_attention.h"

namespace reformer::kernels::cpu::REFORMER_ISA {
namespace {

// Whether position i attended to nobody.
template <class T>
bool is_lone(const IntervalAttentionGradArgs<T>& args, int64_t head_of_all,
             int64_t i) {
  const auto& forward = args.forward;
  const bool real =
      !forward.mask ||
      forward.mask[head_of_all / forward.heads * forward.length + i];
  return real &&
         forward.softmax[2 * (head_of_all * forward.length + i) + 1] == T(0);
}

// delta_i, and the gradients' first values: 0, or dv = do for a lone token, but
// for the first of successors: its row is for what the last one offers.
template <class T>
void begin_gradients(const IntervalAttentionGradArgs<T>& args, T* delta,
                     int64_t head_of_all) {
  const auto& forward = args.forward;
  const int64_t batch = head_of_all / forward.heads;
  const int64_t head = head_of_all % forward.heads;
  const HeadGradients<T> grads(args, batch, head);
  const T* output = forward.output.head(batch, head);
  const auto ends = forward.successors.ends_of(batch, head, forward.length);
  for (int64_t i = 0; i < forward.length; ++i) {
    const T* d_output = grads.d_output + i * grads.d_output_stride;
    const T* o = output + i * forward.output.row_stride;
    delta[head_of_all * forward.length + i] = dot(d_output, o, forward.d_head);
    T* d_v = grads.d_v + i * grads.d_v_stride;
    std::fill_n(grads.d_q + i * grads.d_q_stride, forward.d_head, T(0));
    if (args.d_k.data) {
      std::fill_n(grads.d_k + i * grads.d_k_stride, forward.d_head, T(0));
    }
    if (is_lone(args, head_of_all, i) && i != ends.first) {
      std::copy_n(d_output, forward.d_head, d_v);
    } else {
      std::fill_n(d_v, forward.d_head, T(0));
    }
  }
}

// Moves what the last of successors offers, its own value, from the first one's
// row of d_v, and gives that its own.
template <class T>
void end_gradients(const IntervalAttentionGradArgs<T>& args,
                   int64_t head_of_all) {
  const auto& forward = args.forward;
  const int64_t batch = head_of_all / forward.heads;
  const int64_t head = head_of_all % forward.heads;
  const auto ends = forward.successors.ends_of(batch, head, forward.length);
  if (ends.first < 0) return;
  const HeadGradients<T> grads(args, batch, head);
  T* first = grads.d_v + ends.first * grads.d_v_stride;
  const bool lone = is_lone(args, head_of_all, ends.first);
  const T* own =
      lone ? grads.d_output + ends.first * grads.d_output_stride : kZeroRow<T>;
  if (ends.last != ends.first) {
    add_to_row(first, forward.d_head, grads.d_v + ends.last * grads.d_v_stride);
  }
  copy_row(own, forward.d_head, forward.d_head, first);
}

}  // namespace

template <class T>
void interval_attention_grad(const IntervalAttentionGradArgs<T>& args) {
  const auto& forward = args.forward;
  const int64_t n_heads = forward.batch * forward.heads;
  Scratch<T> delta(n_heads * forward.length);
  std::vector<Reach> reach(n_heads);
  parallel_tasks(n_heads, [&](int64_t head) {
    begin_gradients(args, delta.data(), head);
    reach[head] = reach_of(forward, head / forward.heads, head % forward.heads);
  });

  const int64_t segments = (forward.length + kSegmentRows - 1) / kSegmentRows;
  for_each_head_group(n_heads, segments, [&](int64_t first, int64_t heads) {
    Phases phases;
    for (int64_t head = first; head < first + heads; ++head) {
      add_phases(head, forward.length, reach[head], phases);
    }
    for (int64_t round = 0; round < forward.rounds.rounds; ++round) {
      for (const auto& tasks : phases) {
        parallel_tasks(std::ssize(tasks), [&](int64_t at) {
          const int64_t head = tasks[at].head;
          GradSegment<T>(args, delta.data(), head / forward.heads,
                         head % forward.heads, round)
              .run(tasks[at]);
        });
      }
    }
  });
  if (forward.successors.heads == 0) return;
  parallel_tasks(n_heads, [&](int64_t head) { end_gradients(args, head); });
}

template void interval_attention_grad(const IntervalAttentionGradArgs<float>&);
#ifndef __AVX2__  // float64 runs on the plain kernel alone
template void interval_attention_grad(const IntervalAttentionGradArgs<double>&);
#endif

}  // namespace reformer::kernels::cpu::REFORMER_ISA
