// A task of the backward pass: consecutive queries of one round of one head.
#pragma once

#include <algorithm>

#include "reformer/kernels/cpu/simd/gradient_ring.h"
#include "reformer/kernels/cpu/simd/gradient_tasks.h"

namespace reformer::kernels::cpu::REFORMER_ISA {
// Of interval_attention_grad.cpp alone: g++ inlines otherwise where others may
// call it.
namespace {

// 16 queries and the gradients of their outputs.
template <class T>
struct GradTile {
  GradTile(int64_t width, int64_t rounds)
      : intervals(rounds),
        queries(kPanel * width),
        query_panel(kPanel * width),
        d_outputs(kPanel * width),
        d_output_panel(kPanel * width),
        d_queries(kPanel * width) {}

  TileIntervals<T> intervals;
  Scratch<T> queries;         // [16, width]
  Scratch<T> query_panel;     // [width, 16]
  Scratch<T> d_outputs;       // [16, width]
  Scratch<T> d_output_panel;  // [width, 16]
  Scratch<T> d_queries;       // [16, width]
  alignas(64) T max[kPanel];
  alignas(64) T inverse_sum[kPanel];
  alignas(64) T delta[kPanel];
};

template <class T>
class GradSegment {
 public:
  GradSegment(const IntervalAttentionGradArgs<T>& args, const T* delta,
              int64_t batch, int64_t head, int64_t round)
      : head_(args.forward, batch, head, round),
        grads_(args, batch, head),
        delta_(delta + (batch * args.forward.heads + head) * head_.length),
        ring_(head_, grads_),
        weights_(ring_.rows * kPanel),
        d_scores_(ring_.rows * kPanel),
        tiles_{{head_.width, head_.rounds},
               {head_.width, head_.rounds},
               {head_.width, head_.rounds},
               {head_.width, head_.rounds}} {}

  void run(const GradTask& task) {
    for (int64_t place = task.query_begin; place < task.query_end;
         place += kMacroRows) {
      run_macro_tile(place, task);
    }
    ring_.release_all();
  }

 private:
  void run_macro_tile(int64_t first_place, const GradTask& task) {
    int64_t begin = task.key_end;
    int64_t end = task.key_begin;
    for (int64_t t = 0; t < kMacroTiles; ++t) {
      load_tile(tiles_[t], first_place + t * kPanel);
      begin = std::min(begin, tiles_[t].intervals.begin);
      end = std::max(end, tiles_[t].intervals.end);
    }
    begin = std::max(begin, task.key_begin);
    end = std::min(end, task.key_end);
    next_row_ = std::min(first_place + kMacroRows, head_.length);
    next_rows_end_ = std::min(next_row_ + kMacroRows, head_.length);
    for_each_piece(begin, end, ring_.rows, [&](int64_t from, int64_t to) {
      ring_.hold(from, to);
      for (auto& tile : tiles_) attend(tile, from, to);
    });
    while (next_row_ < next_rows_end_) prefetch_next_rows();
    for (auto& tile : tiles_) finish(tile);
  }

  void load_tile(GradTile<T>& tile, int64_t first_place) {
    tile.intervals.read(head_, first_place);
    if (tile.intervals.empty()) return;
    load_queries(tile, first_place);
    const T* d_outputs[kPanel];
    for (int lane = 0; lane < kPanel; ++lane) {
      const bool active = tile.intervals.active[lane];
      const int64_t i = active ? tile.intervals.position[lane] : 0;
      const bool alone = !active || grads_.softmax[2 * i + 1] == T(0);
      tile.max[lane] = alone ? T(0) : grads_.softmax[2 * i];
      tile.inverse_sum[lane] = alone ? T(0) : 1 / grads_.softmax[2 * i + 1];
      tile.delta[lane] = active ? delta_[i] : T(0);
      T* d_output = &tile.d_outputs[lane * head_.width];
      copy_row(
          active ? grads_.d_output + i * grads_.d_output_stride : kZeroRow<T>,
          head_.d, head_.width, d_output);
      d_outputs[lane] = d_output;
      zero_row(head_.width, &tile.d_queries[lane * head_.width]);
    }
    pack_panel(d_outputs, head_.d, head_.width, tile.d_output_panel.data());
  }

  void load_queries(GradTile<T>& tile, int64_t first_place) {
    const int64_t size = kPanel * head_.width;
    if (head_.shared) {  // the same vectors are in the ring, as keys
      ring_.hold(first_place, first_place + kPanel);
      const int64_t at = first_place % ring_.rows * head_.width;
      copy_row(&ring_.keys[at], size, size, tile.queries.data());
      copy_row(&ring_.key_panels[at], size, size, tile.query_panel.data());
      return;
    }
    const T* rows[kPanel];
    for (int lane = 0; lane < kPanel; ++lane) {
      T* query = &tile.queries[lane * head_.width];
      copy_row(tile.intervals.active[lane]
                   ? head_.q + tile.intervals.position[lane] * head_.q_stride
                   : kZeroRow<T>,
               head_.d, head_.width, query);
      rows[lane] = query;
    }
    pack_panel(rows, head_.d, head_.width, tile.query_panel.data());
  }

  // Two of the rows that the macro tile after this one will gather. A few at
  // a time, between the matmuls: the core can wait for only so many at once.
  [[gnu::always_inline]] void prefetch_next_rows() {
    const int64_t end = std::min(next_row_ + 2, next_rows_end_);
    for (; next_row_ < end; ++next_row_) {
      const int64_t i = head_.order[next_row_];
      prefetch_row(head_.k + i * head_.k_stride, head_.d);
      prefetch_row(head_.value(i), head_.d);
      prefetch_row(grads_.d_output + i * grads_.d_output_stride, head_.d);
      prefetch_row(grads_.d_k + i * grads_.d_k_stride, head_.d);
      prefetch_row(grads_.d_v + i * grads_.d_v_stride, head_.d);
      if (!head_.shared) {
        prefetch_row(head_.q + i * head_.q_stride, head_.d);
        prefetch_row(grads_.d_q + i * grads_.d_q_stride, head_.d);
      }
      prefetch(head_.interval + i * head_.rounds * 2);
      prefetch(grads_.softmax + 2 * i);
      prefetch(delta_ + i);
      if (head_.round > 0) prefetch(head_.place + i * head_.rounds);
    }
  }

  void attend(GradTile<T>& tile, int64_t from, int64_t to) {
    const KeyRange keys = keys_of(tile.intervals, from, to);
    if (keys.from >= keys.to) return;
    const int64_t width = head_.width;
    const int64_t slot = keys.from % ring_.rows;
    const int64_t n = keys.to - keys.from;
    score_panels(
        ring_.key_panels.data(), width, tile.query_panel.data(), head_.d, slot,
        slot + n, weights_.data(), [&]() __attribute__((always_inline)) {
          prefetch_next_rows();
        });
    score_panels(
        ring_.value_panels.data(), width, tile.d_output_panel.data(), head_.d,
        slot, slot + n, d_scores_.data(), [&]() __attribute__((always_inline)) {
          prefetch_next_rows();
        });
    weigh(tile, keys.from, n);
    for (int64_t j = 0; j < n; j += kKeyGroup) {
      add_rows_to_keys(&ring_.d_values[(slot + j) * width],
                       &weights_[j * kPanel], tile.d_outputs.data(), width);
      add_rows_to_keys(&ring_.d_keys[(slot + j) * width],
                       &d_scores_[j * kPanel], tile.queries.data(), width);
    }
    for (int group = 0; group < kPanel / 4; ++group) {
      const int64_t begin =
          std::max(keys.from, tile.intervals.group_begin[group]);
      const int64_t end = std::min(keys.to, tile.intervals.group_end[group]);
      if (begin >= end) continue;
      prefetch_next_rows();
      const int64_t skip = begin - keys.from;
      add_rows_to_queries(&tile.d_queries[group * 4 * width],
                          &d_scores_[skip * kPanel + group * 4],
                          &ring_.keys[(slot + skip) * width], width,
                          end - begin);
    }
  }

  // From q . k and do . v to the weights p and the gradients of q . k.
  void weigh(GradTile<T>& tile, int64_t from, int64_t n) {
    const int64_t slot = from % ring_.rows;
    const bool exclude_self = head_.shared && tile.intervals.holds_self;
    for (int v = 0; v < kPanelVectors<T>; ++v) {
      const int at = v * kLanes<T>;
      const Vector<T> max = load(tile.max + at);
      const Vector<T> inverse_sum = load(tile.inverse_sum + at);
      const Vector<T> delta = load(tile.delta + at);
      for (int64_t j = 0; j < n; ++j) {
        T* weights = &weights_[j * kPanel + at];
        T* d_scores = &d_scores_[j * kPanel + at];
        const T scale = ring_.scales[slot + j];
        const Vector<T> score = mask_scores<T>(
            load(weights) * scale, tile.intervals, v, Index<T>(from + j),
            head_.round, &ring_.places[(slot + j) * head_.rounds],
            exclude_self);
        const Vector<T> weight = exp_of<T>(score - max) * inverse_sum;
        const Vector<T> d_score = weight * (load(d_scores) - delta) * scale;
        store(weights, weight);
        // 0 * inf is NaN: a masked pair must not let a huge value through.
        store(d_scores, weight == T(0) ? Vector<T>{} : d_score);
      }
    }
  }

  void finish(GradTile<T>& tile) {
    for (int lane = 0; lane < kPanel; ++lane) {
      if (!tile.intervals.active[lane]) continue;
      const int64_t i = tile.intervals.position[lane];
      add_to_row(&tile.d_queries[lane * head_.width], head_.d,
                 grads_.d_q + i * grads_.d_q_stride);
    }
  }

  const HeadRound<T> head_;
  const HeadGradients<T> grads_;
  const T* delta_;
  int64_t next_row_ = 0;  // to prefetch
  int64_t next_rows_end_ = 0;
  GradRing<T> ring_;
  Scratch<T> weights_;   // [ring rows, 16]
  Scratch<T> d_scores_;  // [ring rows, 16]
  GradTile<T> tiles_[kMacroTiles];
};

}  // namespace
}  // namespace reformer::kernels::cpu::REFORMER_ISA
