// The keys that a task of the backward pass needs, with their gradients.
#pragma once

#include <algorithm>
#include <cmath>

#include "reformer/kernels/cpu/simd/interval_tile.h"
#include "reformer/kernels/interval_attention.h"

namespace reformer::kernels::cpu::REFORMER_ISA {
// Of interval_attention_grad.cpp alone: g++ inlines otherwise where others may
// call it.
namespace {

// One (batch, head) of the gradients.
template <class T>
struct HeadGradients {
  HeadGradients(const IntervalAttentionGradArgs<T>& args, int64_t batch,
                int64_t head)
      : d_output(args.d_output.head(batch, head)),
        d_q(args.d_q.head(batch, head)),
        d_k(args.d_k.data ? args.d_k.head(batch, head) : d_q),
        d_v(args.d_v.head(batch, head)),
        softmax(args.forward.softmax +
                (batch * args.forward.heads + head) * args.forward.length * 2),
        d_output_stride(args.d_output.row_stride),
        d_q_stride(args.d_q.row_stride),
        d_k_stride(args.d_k.data ? args.d_k.row_stride : d_q_stride),
        d_v_stride(args.d_v.row_stride) {}

  const T* d_output;
  T* d_q;
  T* d_k;
  T* d_v;
  const T* softmax;  // [length, 2]: maximum and sum; 0 for a lone token
  int64_t d_output_stride;
  int64_t d_q_stride;
  int64_t d_k_stride;
  int64_t d_v_stride;
};

// The keys of the places that were needed last, and their gradients so far.
template <class T>
class GradRing {
 public:
  GradRing(const HeadRound<T>& head, const HeadGradients<T>& grads)
      : rows(ring_rows<T>(/*arrays=*/5, head.width)),
        keys(rows * head.width),
        key_panels(rows * head.width),
        value_panels(rows * head.width),
        d_keys(rows * head.width),
        d_values(rows * head.width),
        scales(rows),
        places(rows * head.rounds),
        head_(head),
        grads_(grads),
        held_(rows / kPanel) {
    std::fill_n(held_.data(), rows / kPanel, int64_t{-1});
  }

  // Makes sure that places [begin, end), which span no multiple of `rows`,
  // are held.
  void hold(int64_t begin, int64_t end) {
    for (int64_t panel = begin / kPanel; panel * kPanel < end; ++panel) {
      int64_t& held = held_[panel % (rows / kPanel)];
      if (held == panel) continue;
      if (held >= 0) release(held * kPanel);
      held = panel;
      gather(panel * kPanel);
    }
  }

  // Adds everything that is still here to memory, in the order of places.
  void release_all() {
    std::sort(held_.data(), held_.data() + rows / kPanel);
    for (int64_t slot = 0; slot < rows / kPanel; ++slot) {
      if (held_[slot] >= 0) release(held_[slot] * kPanel);
    }
  }

  const int64_t rows;
  Scratch<T> keys;          // [rows, width], not normalised
  Scratch<T> key_panels;    // [rows / 16] panels of [width, 16] of them
  Scratch<T> value_panels;  // likewise
  Scratch<T> d_keys;        // [rows, width], of the keys times their scales
  Scratch<T> d_values;      // [rows, width]
  Scratch<T> scales;        // [rows]: of each key's scores
  Scratch<int32_t> places;  // [rows, rounds]: in the rounds before this one

 private:
  void gather(int64_t first_place) {
    const int64_t width = head_.width;
    const int64_t slot = first_place % rows;
    const T* key_rows[kPanel];
    const T* value_rows[kPanel];
    for (int64_t r = 0; r < kPanel; ++r) {
      const bool exists = first_place + r < head_.length;
      const int64_t j = exists ? head_.order[first_place + r] : 0;
      const bool real = exists && !head_.is_padded(j);
      T* key = &keys[(slot + r) * width];
      copy_row(real ? head_.k + j * head_.k_stride : kZeroRow<T>, head_.d,
               width, key);
      key_rows[r] = key;
      value_rows[r] = real ? head_.value(j) : kZeroRow<T>;
      zero_row(width, &d_keys[(slot + r) * width]);
      zero_row(width, &d_values[(slot + r) * width]);
      for (int64_t e = 0; e < head_.round; ++e) {
        places[(slot + r) * head_.rounds + e] =
            head_.place[j * head_.rounds + e];
      }
    }
    T* key_panel = &key_panels[slot * width];
    pack_panel(key_rows, head_.d, width, key_panel);
    pack_panel(value_rows, head_.d, width, &value_panels[slot * width]);
    if (head_.shared) {
      inverse_norms(key_panel, head_.d, &scales[slot]);
    } else {
      std::fill_n(&scales[slot], kPanel, T(1 / std::sqrt(double(head_.d))));
    }
  }

  void release(int64_t first_place) {
    const int64_t end = std::min(first_place + kPanel, head_.length);
    for (int64_t s = first_place; s < end; ++s) {
      const int64_t j = head_.order[s];
      const int64_t row = s % rows;
      T* d_key = &d_keys[row * head_.width];
      if (head_.shared) {
        take_gradient_through_norm(&keys[row * head_.width], scales[row],
                                   d_key);
      }
      add_to_row(d_key, head_.d, grads_.d_k + j * grads_.d_k_stride);
      add_to_row(&d_values[row * head_.width], head_.d, d_value(j));
    }
  }

  T* d_value(int64_t j) {
    return grads_.d_v + head_.offered.gradient_row(static_cast<int32_t>(j)) *
                            grads_.d_v_stride;
  }

  // Of the unit key x / |x|, the part across x is what remains.
  void take_gradient_through_norm(const T* x, T inverse_norm, T* d_x) {
    const T along = dot(x, d_x, head_.width) * inverse_norm * inverse_norm;
    for (int64_t c = 0; c < head_.width; c += kLanes<T>) {
      store(d_x + c, load(d_x + c) - load(x + c) * along);
    }
  }

  const HeadRound<T>& head_;
  const HeadGradients<T>& grads_;
  Scratch<int64_t> held_;  // the panel in each slot
};

}  // namespace
}  // namespace reformer::kernels::cpu::REFORMER_ISA
